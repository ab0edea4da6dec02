/** Returns the default run folder of a command: runs/blackjack-2026-01-31-120000. */
export function timestampedFolder(name: string): string {
  const time = new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  return `runs/${toFileName(name)}-${time}`;
}

/**
 * Returns an environment's name for use in a file name: "CartPole-v1" is "cartpole-v1",
 * "./my-env.js" is "my-env".
 */
export function toFileName(name: string): string {
  const [baseName] = /[^\\/]+(?=\.[cm]?[jt]s(?:[#:]|$))/.exec(name) ?? [name];
  return baseName.toLowerCase().replace(/[^a-z0-9]+/g, "-");
}
