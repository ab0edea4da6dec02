import { errorMessage, LlamaGymError } from "../errors.js";

/** Returns the system error code ("ENOENT", "ENOSPC") or undefined. */
export function getSystemErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/**
 * Creates FILE_CORRUPT for a file that violates its format, naming the file, the first fault and
 * what to do.
 */
export function corruptFileError(
  path: string,
  fault: string,
  {
    advice = "Copy or download the file again.",
    ...options
  }: { readonly advice?: string; readonly cause?: unknown } = {},
): LlamaGymError {
  return new LlamaGymError("FILE_CORRUPT", `${path} is damaged: ${fault}. ${advice}`, options);
}

/** A pointer of Git LFS has fewer bytes. */
export const LFS_POINTER_BYTES = 1024;

/**
 * Checks that Git LFS has downloaded a file, of which a clone without it has a pointer of three
 * lines only.
 * @throws FILE_CORRUPT
 */
export function checkNoLfsPointer(path: string, bytes: Uint8Array): void {
  if (bytes.length >= LFS_POINTER_BYTES || !new TextDecoder().decode(bytes).startsWith("version https://git-lfs"))
    return;
  throw new LlamaGymError(
    "FILE_CORRUPT",
    `${path} is a pointer of Git LFS, not the file itself. Run "git lfs pull" in its folder, or download the file again.`,
  );
}

/** Returns undefined for FILE_NOT_FOUND; rethrows other errors. For `catch`. */
export function ignoreMissingFile(error: unknown): undefined {
  if (error instanceof LlamaGymError && error.code === "FILE_NOT_FOUND") return undefined;
  throw error;
}

/** Converts a failed read to FILE_NOT_FOUND or FILE_READ_FAILED. */
export function toReadError(path: string, error: unknown): LlamaGymError {
  if (error instanceof LlamaGymError) return error;
  const code = getSystemErrorCode(error);
  if (code === "ENOENT" || code === "ENOTDIR")
    return new LlamaGymError("FILE_NOT_FOUND", `${path} does not exist. Check the path.`, { cause: error });
  const advice = code === "EACCES" || code === "EPERM" ? "Check its permissions." : "Check the path and the disk.";
  return new LlamaGymError("FILE_READ_FAILED", `${path} could not be read: ${errorMessage(error)}. ${advice}`, {
    cause: error,
  });
}

const writeAdvice: Record<string, string> = {
  ENOSPC: "The disk is full: free some space or choose another folder.",
  EDQUOT: "The disk quota is used up: free some space or choose another folder.",
  EACCES: "Check the folder's permissions.",
  EPERM: "Check the folder's permissions.",
  EROFS: "The disk is read-only: choose another folder.",
  ENOTDIR: "A part of the path is a file, not a folder.",
  EISDIR: "The path is a folder: choose a file name.",
};

/** Converts a failed write to FILE_WRITE_FAILED with advice. */
export function toWriteError(path: string, error: unknown): LlamaGymError {
  if (error instanceof LlamaGymError) return error;
  const advice = writeAdvice[getSystemErrorCode(error) ?? ""] ?? "Check the path and the disk.";
  return new LlamaGymError("FILE_WRITE_FAILED", `${path} could not be written: ${errorMessage(error)}. ${advice}`, {
    cause: error,
  });
}
