/** A model on the hub, and perhaps one file of it. */
export interface ModelReference {
  readonly id: string;
  /** The path of a GGUF file in the repository, or the name of a quantisation (Q4_K_M). */
  readonly file?: string;
}

const idPattern = /^[A-Za-z0-9_][\w.-]*(?:\/[A-Za-z0-9_][\w.-]*)?$/u;

/**
 * Reads `owner/name`, `name`, and with a file or quantisation after it: `owner/name:file.gguf`, `owner/name:Q4_K_M`,
 * `owner/name#Q4_K_M`. Gives undefined for what cannot be a hub id, such as a path.
 */
export function parseModelReference(text: string): ModelReference | undefined {
  const separator = text.search(/[:#]/u);
  const id = separator < 0 ? text : text.slice(0, separator);
  const file = separator < 0 ? undefined : text.slice(separator + 1);
  if (!idPattern.test(id) || id.includes("--") || id.includes("..") || id.length > 96 || /\.(?:gguf|git)$/iu.test(id)) {
    return undefined;
  }
  if (file === undefined) return { id };
  return file === "" || file.startsWith("/") ? undefined : { id, file };
}
