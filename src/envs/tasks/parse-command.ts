/**
 * Parses a written command from a completion: the last line that starts with one of the
 * verbs, or else its only line. Characters outside `charset` become spaces. Returns undefined for none or a too long one.
 */
export function parseCommand(
  completion: string,
  { verbs, charset, maxLength }: { verbs: readonly string[]; charset: string; maxLength: number },
): string | undefined {
  const lines = completion.split("\n").filter((line) => line.trim() !== "");
  const start = new RegExp(`^[\\s>*\`"-]*(?:(?:action|command)\\s*:\\s*)?((?:${verbs.join("|")})\\b.*)$`, "i");
  const commands = lines.flatMap((line) => start.exec(line)?.[1] ?? []);
  const command = commands.at(-1) ?? (lines.length === 1 ? lines[0] : "");
  const plain = Array.from(command, (character) => (charset.includes(character) ? character : " ")).join("");
  return plain.trim() === "" || plain.length > maxLength ? undefined : plain;
}

/** Letters, digits and the characters of arithmetic and prices. */
export const COMMAND_CHARSET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,+*/()%$'?!-";
