/**
 * Byte-level tokenizers spell each byte of the UTF-8 text as one printable character, so that a vocabulary is text:
 * printable Latin-1 bytes stand for themselves, the other 68 for the characters from U+0100 on (GPT-2, 2019).
 */
const byteToCharacter: readonly string[] = (() => {
  const isPrintable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : next++));
})();

const characterToByte = new Map(byteToCharacter.map((character, byte) => [character, byte]));
const utf8 = new TextEncoder();

/** The text with each byte of its UTF-8 form spelled as one character. */
export function encodeBytes(text: string): string {
  let encoded = "";
  for (const byte of utf8.encode(text)) encoded += byteToCharacter[byte];
  return encoded;
}

/** The bytes that a byte-level token stands for; the token's own UTF-8 form when a character of it spells no byte. */
export function decodeBytes(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = characterToByte.get(token[i]);
    if (byte === undefined) return utf8.encode(token);
    bytes[i] = byte;
  }
  return bytes;
}
