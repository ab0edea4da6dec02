import { StoryError, type InstructionBudget } from "./instruction-budget.js";
import { readWord, type Story } from "./story.js";

/** Maximum text length, far above that of valid stories. */
const MAX_TEXT_LENGTH = 1 << 16;
/** Maximum characters in the cache of decoded texts. */
const MAX_CACHED_CHARACTERS = 1 << 22;
const NEWLINE = 13;
const QUESTION_MARK = 63;
const DEFAULT_ALPHABETS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \r0123456789.,!?_#'\"/\\-:()";
const DEFAULT_UNICODE = "äöüÄÖÜß»«ëïÿËÏáéíóúýÁÉÍÓÚÝàèìòùÀÈÌÒÙâêîôûÂÊÎÔÛåÅøØãñõÃÑÕæÆçÇþðÞÐ£œŒ¡¿";
const UNICODE_START = 155;
const ENCODED_LENGTH = 9;

/** Text encoding of a story: Z-characters, ZSCII and Unicode (Standard, section 3). */
export class TextCodec {
  /** ZSCII codes by alphabet and Z-character. */
  private readonly alphabets: readonly number[][];
  private readonly unicode: readonly string[];
  private readonly zsciiCodes = new Map<string, number>();
  private cachedCharacters = 0;

  constructor(
    private readonly story: Story,
    private readonly memory: Uint8Array,
    private readonly budget: InstructionBudget,
  ) {
    const alphabetTable = readWord(memory, 0x34);
    const letters = alphabetTable
      ? [...memory.subarray(alphabetTable, alphabetTable + 78)]
      : Array.from(DEFAULT_ALPHABETS, (letter) => letter.charCodeAt(0));
    this.alphabets = [letters.slice(0, 26), letters.slice(26, 52), letters.slice(52, 78)];
    this.alphabets[2][1] = NEWLINE;
    const extension = readWord(memory, 0x36);
    const unicodeTable = extension && readWord(memory, extension) >= 3 ? readWord(memory, extension + 6) : 0;
    this.unicode = unicodeTable
      ? Array.from({ length: memory[unicodeTable] }, (_, i) =>
          String.fromCharCode(readWord(memory, unicodeTable + 1 + 2 * i)),
        )
      : Array.from(DEFAULT_UNICODE);
    for (const [i, character] of this.unicode.entries()) this.zsciiCodes.set(character, UNICODE_START + i);
    for (let code = 32; code < 127; code++) this.zsciiCodes.set(String.fromCharCode(code), code);
    this.zsciiCodes.set("\n", NEWLINE);
  }

  /** Returns the character of a ZSCII code; empty for codes that print nothing. */
  toUnicode(zscii: number): string {
    if (zscii === NEWLINE) return "\n";
    if (zscii >= 32 && zscii < 127) return String.fromCharCode(zscii);
    return this.unicode[zscii - UNICODE_START] ?? "";
  }

  /** Returns the ZSCII code of a character, that of "?" for an unknown one. */
  toZscii(character: string): number {
    return this.zsciiCodes.get(character) ?? QUESTION_MARK;
  }

  /** Decodes the text at an address. Abbreviations do not nest, as the standard requires. */
  decode(address: number): string {
    const cached = this.story.strings.get(address);
    if (cached !== undefined) return cached;
    const text = this.decodeUncached(address, false);
    if (address >= this.story.staticBase && this.cachedCharacters + text.length < MAX_CACHED_CHARACTERS) {
      this.cachedCharacters += text.length;
      this.story.strings.set(address, text);
    }
    return text;
  }

  private decodeUncached(address: number, isAbbreviation: boolean): string {
    const characters = this.unpack(address);
    let text = "";
    let alphabet = 0;
    for (let i = 0; i < characters.length; i++) {
      const character = characters[i];
      const current = alphabet;
      alphabet = 0;
      if (character === 0) text += " ";
      else if (character < 4) {
        if (isAbbreviation || i + 1 >= characters.length) break;
        text += this.decodeAbbreviation(32 * (character - 1) + characters[++i]);
      } else if (character < 6) alphabet = character - 3;
      else if (current === 2 && character === 6) {
        if (i + 2 >= characters.length) break;
        text += this.toUnicode((characters[i + 1] << 5) | characters[i + 2]);
        i += 2;
      } else text += this.toUnicode(this.alphabets[current][character - 6]);
      if (text.length > MAX_TEXT_LENGTH)
        throw new StoryError(`it prints a text of more than ${MAX_TEXT_LENGTH} characters`);
    }
    return text;
  }

  private decodeAbbreviation(index: number): string {
    const entry = readWord(this.memory, 0x18) + 2 * index;
    return this.decodeUncached(readWord(this.memory, entry) * 2, true);
  }

  /** Reads three Z-characters per word, up to the word with its top bit set. */
  private unpack(address: number): number[] {
    const characters: number[] = [];
    for (let at = address; at + 1 < this.memory.length; at += 2) {
      const word = readWord(this.memory, at);
      characters.push((word >> 10) & 31, (word >> 5) & 31, word & 31);
      if (word & 0x8000) break;
    }
    this.budget.spend(characters.length);
    return characters;
  }

  /** Encodes a word as the six bytes of its dictionary entry. */
  encodeWord(zscii: ArrayLike<number>): number[] {
    const characters: number[] = [];
    for (let i = 0; i < zscii.length && characters.length < ENCODED_LENGTH; i++)
      characters.push(...this.encodeCharacter(zscii[i]));
    while (characters.length < ENCODED_LENGTH) characters.push(5);
    const bytes: number[] = [];
    for (let i = 0; i < ENCODED_LENGTH; i += 3) {
      const word = (characters[i] << 10) | (characters[i + 1] << 5) | characters[i + 2];
      bytes.push((word >> 8) | (i + 3 === ENCODED_LENGTH ? 0x80 : 0), word & 0xff);
    }
    return bytes;
  }

  private encodeCharacter(zscii: number): number[] {
    if (zscii === 32) return [0];
    for (const [alphabet, letters] of this.alphabets.entries()) {
      const index = letters.indexOf(zscii);
      if (index >= 0 && !(alphabet === 2 && index === 0))
        return alphabet === 0 ? [index + 6] : [alphabet + 3, index + 6];
    }
    return [5, 6, zscii >> 5, zscii & 31];
  }
}
