/** Location of a model on this machine. */
export interface ModelLocation {
  readonly kind: "folder" | "gguf";
  /** The folder or GGUF file (the first part of a split one). */
  readonly path: string;
  /** Hub id and commit of a model from the hub. */
  readonly id?: string;
  readonly revision?: string;
}
