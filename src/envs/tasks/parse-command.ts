/**
 * The command that a reply means, for actions that are written commands: the last line that starts with one of the
 * verbs; else its only line. Characters outside `charset` become spaces. Undefined when there is none, or it is too long.
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

/** Letters, digits and what arithmetic and prices need. */
export const COMMAND_CHARSET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,+*/()%$'?!-";
