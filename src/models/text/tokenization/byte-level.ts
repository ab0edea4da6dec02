/**
 * Byte-level tokenizers represent each byte of UTF-8 text as a printable character (GPT-2, 2019):
 * printable Latin-1 bytes as themselves, the other 68 as characters from U+0100 on.
 */
const byteToCharacter: readonly string[] = (() => {
  const isPrintable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : next++));
})();

const characterToByte = new Map(byteToCharacter.map((character, byte) => [character, byte]));
const utf8 = new TextEncoder();

/** Converts each byte of a text's UTF-8 form to its character. */
export function encodeBytes(text: string): string {
  let encoded = "";
  for (const byte of utf8.encode(text)) encoded += byteToCharacter[byte];
  return encoded;
}

/** Returns the bytes of a byte-level token, or its UTF-8 form if a character maps to no byte. */
export function decodeBytes(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = characterToByte.get(token[i]);
    if (byte === undefined) return utf8.encode(token);
    bytes[i] = byte;
  }
  return bytes;
}
