/** Which headers are CUDA: those that hold kernels. Knows nothing of VS Code. */

const HEADER = /\.(?:h|hh|hpp|hxx|inl|inc|ipp|tpp)$/i;
const COMMENT = /\/\*[\s\S]*?(?:\*\/|$)|\/\/[^\n]*/g;
const KERNEL = /^(?![ \t]*#).*\b__global__\b/m; // not where a macro of that name is defined, or asked for
const MOST = 2_000_000; // characters that are looked at

/** Whether a header (by its name) has a kernel, outside comments. */
export function holdsKernels(path: string, text: string): boolean {
  return HEADER.test(path) && text.includes("__global__") && KERNEL.test(text.slice(0, MOST).replace(COMMENT, " "));
}
