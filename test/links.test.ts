import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { listPages } from "./support/pages.js";

const root = fileURLToPath(new URL("..", import.meta.url));

/** GitHub's anchor of a heading. */
const toAnchor = (heading: string) =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, "")
    .replaceAll(" ", "-");

/** Targets of a page's links to files, relative to the repository. */
function* listLinks(page: string, text: string): Generator<{ link: string; target: string; anchor?: string }> {
  for (const [, link] of text.replaceAll(/^(`{3,})[\s\S]*?^\1$/gm, "").matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(link)) continue;
    const [file, anchor] = link.split("#");
    yield { link, target: normalize(file === "" ? page : join(dirname(page), file)), anchor };
  }
}

it("every link between pages leads to a file and a heading that exist", async () => {
  const broken: string[] = [];
  let numAnchors = 0;
  for (const page of [...(await listPages()), "ARCHITECTURE.md", "SECURITY.md", "bench/README.md"]) {
    const text = await readFile(join(root, page), "utf8");
    for (const { link, target, anchor } of listLinks(page, text)) {
      if (!existsSync(join(root, target))) broken.push(`${page}: ${link}`);
      else if (anchor !== undefined && target.endsWith(".md")) {
        numAnchors++;
        const headings = (await readFile(join(root, target), "utf8")).matchAll(/^#+ (.*)$/gm);
        if (!Array.from(headings, ([, heading]) => toAnchor(heading)).includes(anchor)) broken.push(`${page}: ${link}`);
      }
    }
  }
  expect(broken).toEqual([]);
  expect(numAnchors).toBeGreaterThan(50);
});

it("every link of a packed page leads to a packed file", async () => {
  const args = ["pack", "--dry-run", "--ignore-scripts", "--json"];
  const listed = execFileSync("npm", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 25, stdio: "pipe" });
  const [{ files }] = JSON.parse(listed) as [{ files: { path: string }[] }];
  const paths = files.map(({ path }) => path);
  const pages = paths.filter((path) => path.endsWith(".md"));
  const isPacked = (target: string) => paths.some((path) => path === target || path.startsWith(`${target}/`));
  const dead: string[] = [];
  for (const page of pages) {
    const text = await readFile(join(root, page), "utf8");
    for (const { link, target } of listLinks(page, text)) {
      if (!isPacked(target.replace(/\/$/, ""))) dead.push(`${page}: ${link}`);
    }
  }
  expect(dead).toEqual([]);
  expect(pages.length).toBeGreaterThan(50);
});
