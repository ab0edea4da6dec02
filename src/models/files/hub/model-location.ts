/** Where a model lies on this machine. */
export interface ModelLocation {
  readonly kind: "folder" | "gguf";
  /** The folder, or the GGUF file (of a split one the first part). */
  readonly path: string;
  /** The hub id and the commit, for a model from the hub. */
  readonly id?: string;
  readonly revision?: string;
}
