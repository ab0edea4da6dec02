import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { TEMPLATES } from "./templates.js";

/** An error of the user's input; its message says what to do. */
export class CreateError extends Error {}

/** Files that npm leaves out of packages, by their names in the templates. */
const RENAMED_FILES: Readonly<Record<string, string>> = { gitignore: ".gitignore", npmrc: ".npmrc" };

const packageFolder = fileURLToPath(new URL("../", import.meta.url));
const templatesFolder = join(packageFolder, "templates");

/**
 * Creates a project from a template. The folder appears when it is complete.
 * @throws CreateError for an unknown template, or a folder that is not empty.
 */
export async function createProject(folder: string, template: string): Promise<void> {
  if (!Object.hasOwn(TEMPLATES, template))
    throw new CreateError(`There is no template "${template}". Templates: ${Object.keys(TEMPLATES).join(", ")}.`);
  const hasFolder = await checkEmpty(folder);
  const parent = dirname(folder);
  await mkdir(parent, { recursive: true });
  const draft = join(parent, `.${basename(folder)}-${process.pid}`);
  try {
    await cp(join(templatesFolder, "common"), draft, { recursive: true });
    await cp(join(templatesFolder, template), draft, { recursive: true });
    for (const [from, to] of Object.entries(RENAMED_FILES)) await rename(join(draft, from), join(draft, to));
    await writeJson(join(draft, "package.json"), await makeManifest(basename(folder), template));
    if (hasFolder) for (const file of await readdir(draft)) await rename(join(draft, file), join(folder, file));
    else await rename(draft, folder);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Returns whether the folder exists. Version control may have been set up in it. */
async function checkEmpty(folder: string): Promise<boolean> {
  const files = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    if (error.code === "ENOTDIR") throw new CreateError(`${folder} is a file. Choose the name of a new folder.`);
    throw error;
  });
  const found = files?.filter((file) => file !== ".git") ?? [];
  if (found.length > 0)
    throw new CreateError(`${folder} is not empty: it contains ${found[0]}. Choose a new or an empty folder.`);
  return files !== undefined;
}

/** The template's package.json adds to the common one. */
async function makeManifest(folderName: string, template: string): Promise<object> {
  const { version } = await readJson(join(packageFolder, "package.json"));
  const common = await readJson(join(templatesFolder, "common", "package.json"));
  const own = await readJson(join(templatesFolder, template, "package.json"));
  return {
    name: toPackageName(folderName),
    ...common,
    scripts: { ...common.scripts, ...own.scripts },
    dependencies: { llamagym: `^${version}`, ...own.dependencies },
    devDependencies: { ...common.devDependencies, ...own.devDependencies },
  };
}

/** A name that npm accepts: "My Agent" becomes "my-agent". */
function toPackageName(folderName: string): string {
  const name = folderName
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
  return name === "" || name === "llamagym" ? "my-agent" : name;
}

interface Manifest {
  readonly version?: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

async function readJson(path: string): Promise<Manifest> {
  return JSON.parse(await readFile(path, "utf8")) as Manifest;
}

async function writeJson(path: string, value: object): Promise<void> {
  await writeFile(path, `${JSON.stringify(value, undefined, 2)}\n`);
}
