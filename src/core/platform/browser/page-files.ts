import { fs } from "./index.js";

/**
 * Reads a file of the page's memory, such as an adapter that was saved.
 * @throws an error with code ENOENT for a file that does not exist.
 */
export function readFile(path: string): Promise<Uint8Array<ArrayBuffer>> {
  return fs.readBytes(path);
}

/**
 * Writes a file into the page's memory, and its folders, so that models and runs can be opened by
 * their path.
 */
export async function writeFile(path: string, bytes: Uint8Array): Promise<void> {
  await fs.makeFolder(fs.dirname(path));
  await fs.remove(path);
  const file = await fs.open(path, "create");
  await file.write(bytes);
  await file.close();
}

/** Lists the paths of all files below a folder of the page's memory. */
export async function listFiles(folder: string): Promise<string[]> {
  const paths = (await fs.list(folder, { recursive: true })).map((name) => fs.join(folder, name));
  const kinds = await Promise.all(paths.map((path) => fs.stat(path)));
  return paths.filter((_, i) => kinds[i].isFile).sort();
}
