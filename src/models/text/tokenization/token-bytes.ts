import { decodeBytes } from "./byte-level.js";
import { createTokenReader, decodesByteCharacters, decodesByteTokens } from "./decoder.js";
import type { Normalizer } from "./normalizer.js";

const utf8 = new TextEncoder();
const byteToken = /^<0x([0-9A-Fa-f]{2})>$/;

/** Returns the bytes of a vocabulary token in the middle of a text, by tokenizer.json's decoder. */
export function tokenBytes(decoder: unknown): (token: string) => Uint8Array {
  if (decodesByteCharacters(decoder)) return decodeBytes;
  const readToken = createTokenReader(decoder);
  const byteTokens = decodesByteTokens(decoder);
  return (token) => {
    const byte = byteTokens ? byteToken.exec(token) : null;
    return byte ? Uint8Array.of(Number.parseInt(byte[1], 16)) : utf8.encode(readToken(token));
  };
}

/** Returns the text that tokens represent for a small part of a text: normalized, with spaces. */
export function partText(decoder: unknown, normalizer: Normalizer | null): (part: string) => string {
  const normalize = normalizer ?? ((part: string) => part);
  if (decodesByteCharacters(decoder)) return normalize;
  const readToken = createTokenReader(decoder);
  return (part) => readToken(normalize(part));
}
