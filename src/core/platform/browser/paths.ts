/** POSIX paths; the current folder is "/". */

export function join(...parts: readonly string[]): string {
  return normalize(parts.filter((part) => part !== "").join("/"));
}

export function resolve(...parts: readonly string[]): string {
  const from = parts.findLastIndex((part) => part.startsWith("/"));
  const path = join("/", ...parts.slice(Math.max(from, 0)));
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

export function dirname(path: string): string {
  const at = path.replace(/(?<=.)\/+$/, "").lastIndexOf("/");
  return at < 0 ? "." : at === 0 ? "/" : path.slice(0, at);
}

export function basename(path: string): string {
  return path.replace(/\/+$/, "").split("/").at(-1)!;
}

export function relative(from: string, to: string): string {
  const [start, end] = [from, to].map((path) => resolve(path).split("/").filter(Boolean));
  let shared = 0;
  while (shared < start.length && shared < end.length && start[shared] === end[shared]) shared++;
  return [...start.slice(shared).map(() => ".."), ...end.slice(shared)].join("/");
}

function normalize(path: string): string {
  const isAbsolute = path.startsWith("/");
  const names: string[] = [];
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.length > 0 && names.at(-1) !== "..") names.pop();
    else if (!isAbsolute) names.push(name);
  }
  const text = names.join("/") + (path.endsWith("/") && names.length > 0 ? "/" : "");
  if (isAbsolute) return `/${text}`;
  return text !== "" ? text : path.endsWith("/") ? "./" : ".";
}
