import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { deflate, inflate } from "node:zlib";

export const compress = promisify(deflate);
export const decompress = promisify(inflate);

export const sha256 = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex");

/** Returns the bytes of an array of numbers. */
export const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Copies the bytes, because an array of numbers must be aligned. */
export const fromBase64 = (text: string, bytesPerNumber: number): ArrayBuffer => {
  const bytes = Buffer.from(text, "base64");
  return new Uint8Array(bytes.subarray(0, bytes.length - (bytes.length % bytesPerNumber))).buffer;
};
