import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const SKIPPED = /node_modules|\/api\//;

/** A fenced block: "```ts own-env.ts" has the language `ts` and the file `own-env.ts`. */
export type CodeBlock = { readonly language: string; readonly file: string | undefined; readonly code: string };

function extractBlocks(markdown: string): CodeBlock[] {
  const fences = markdown.matchAll(/^(`{3,})([a-z]*)(?: (\S+))?\n([\s\S]*?)^\1$/gm);
  return Array.from(fences, ([, , language, file, code]) => ({ language, file, code }));
}

/** Returns the pages with documentation, relative to the repository. */
export async function listPages(): Promise<string[]> {
  const pages = ["README.md"];
  for (const folder of ["docs", "recipes"]) {
    for (const name of await readdir(join(root, folder), { recursive: true })) {
      if (name.endsWith(".md") && !SKIPPED.test(name)) pages.push(`${folder}/${name}`);
    }
  }
  return pages.toSorted();
}

async function readBlocks(page: string): Promise<CodeBlock[]> {
  return extractBlocks(await readFile(join(root, page), "utf8"));
}

/**
 * Writes the TypeScript of a page into `folder`, and returns the paths. Blocks with a file name
 * become that file; the others are one program, in their order.
 */
export async function writePrograms(page: string, folder: string): Promise<string[]> {
  const programs = new Map<string, string>();
  for (const { language, file = "page.ts", code } of await readBlocks(page)) {
    if (language === "ts") programs.set(file, `${programs.get(file) ?? ""}${code}\n`);
  }
  return Promise.all(
    Array.from(programs, async ([file, code]) => {
      const path = join(folder, page.replace(/\.md$/, ""), file);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, code);
      return path;
    }),
  );
}
