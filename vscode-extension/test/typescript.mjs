// Lets `node --test` load TypeScript on Node.js 20, which does not strip types itself: esbuild does.
import { register } from "node:module";

register("./typescript-hooks.mjs", import.meta.url);
