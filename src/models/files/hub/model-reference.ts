/** A hub model, optionally with a file. */
export interface ModelReference {
  readonly id: string;
  /** Path of a GGUF file in the repository, or a quantization (Q4_K_M). */
  readonly file?: string;
}

const idPattern = /^[A-Za-z0-9_][\w.-]*(?:\/[A-Za-z0-9_][\w.-]*)?$/u;

/**
 * Parses `owner/name` or `name`, optionally followed by a file or quantization:
 * `owner/name:file.gguf`, `owner/name:Q4_K_M`, `owner/name#Q4_K_M`. Returns undefined for anything
 * else, such as a path.
 */
export function parseModelReference(text: string): ModelReference | undefined {
  const separator = text.search(/[:#]/u);
  const id = separator < 0 ? text : text.slice(0, separator);
  const file = separator < 0 ? undefined : text.slice(separator + 1);
  if (!idPattern.test(id) || id.includes("--") || id.includes("..") || id.length > 96 || /\.(?:gguf|git)$/iu.test(id))
    return undefined;
  if (file === undefined) return { id };
  return file === "" || file.startsWith("/") ? undefined : { id, file };
}
