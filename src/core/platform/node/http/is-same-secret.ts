import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Compares a secret that a caller sent with the expected one, in a time that does not tell how much
 * of it is right.
 */
export function isSameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
