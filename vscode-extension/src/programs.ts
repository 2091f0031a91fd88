/** Programs of others, run to their end or until somebody stops them. Knows nothing of VS Code. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Run } from "./environment";

/** What would make Python or pip look, or write, somewhere else than in the environment that is being made. */
const MISLEADING = /^(?:PYTHON(?:PATH|HOME|STARTUP)|VIRTUAL_ENV|PIP_(?:TARGET|PREFIX|USER|ROOT|REQUIRE_VIRTUALENV))$/i;

export class Stopped extends Error {}

/** `stopped` is called with what stops all that runs then. Programs run in `cwd`. */
export function runner(cwd: string, stopped: (stop: () => void) => void): Run {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !MISLEADING.test(name)));
  const running = new Set<() => void>();
  let isStopped = false;
  stopped(() => {
    isStopped = true;
    running.forEach((stop) => {
      stop();
    });
  });
  return (program, args, told) =>
    new Promise((resolve, reject) => {
      if (isStopped) {
        reject(new Stopped("stopped"));
        return;
      }
      const group = process.platform !== "win32"; // pip has children of its own
      const child = spawn(program, [...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: group });
      const stop = (): void => {
        try {
          if (child.pid !== undefined) process.kill(group ? -child.pid : child.pid, "SIGKILL");
        } catch {
          // it has just ended
        }
      };
      if (child.pid !== undefined) {
        running.add(stop);
      }
      for (const stream of [child.stdout, child.stderr]) {
        createInterface(stream).on("line", told);
      }
      child.on("error", () => {
        running.delete(stop);
        resolve(127); // it cannot be started: as a shell says it
      });
      child.on("close", (status) => {
        running.delete(stop);
        if (isStopped) {
          reject(new Stopped("stopped"));
        } else {
          resolve(status ?? 1);
        }
      });
    });
}
