import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";

import { LlamaGymError } from "../errors.js";
import { writeFileAtomic } from "../files/atomic.js";
import { readFailure } from "../files/failure.js";
import { readJson } from "../files/json.js";
import { isObject } from "./tokenization/json.js";
import type { TokenizerFiles } from "./tokenizer-files.js";

/** Named chat templates beside the main one, as Transformers saves them. */
const namedTemplates = "additional_chat_templates";

/**
 * The tokenizer files of a folder; all but tokenizer.json may be missing.
 * Throws FILE_NOT_FOUND, FILE_READ_FAILED and FILE_CORRUPT.
 */
export async function readTokenizerFolder(folder: string): Promise<TokenizerFiles> {
  const optional = (name: string) => readJson(join(folder, name)).catch(missingFile);
  const [tokenizerConfig, specialTokensMap, generationConfig, chatTemplate] = await Promise.all([
    optional("tokenizer_config.json"),
    optional("special_tokens_map.json"),
    optional("generation_config.json"),
    readTemplates(folder),
  ]);
  const tokenizerJson = await readJson(join(folder, "tokenizer.json")).catch((error: unknown) => {
    throw missingFile(error) === undefined ? noTokenizer(folder) : error;
  });
  return { tokenizerJson, tokenizerConfig, specialTokensMap, generationConfig, chatTemplate };
}

/**
 * Writes tokenizer files into a folder, each whole or not at all, so that Python's AutoTokenizer opens it. Objects are
 * written as they were read. A separate chat template becomes chat_template.jinja, named ones stand beside it.
 * Throws FILE_WRITE_FAILED.
 */
export async function writeTokenizerFolder(files: TokenizerFiles, folder: string): Promise<void> {
  await writeFileAtomic(join(folder, "tokenizer.json"), `${JSON.stringify(files.tokenizerJson, null, 2)}\n`);
  for (const [name, value] of [
    ["tokenizer_config.json", files.tokenizerConfig],
    ["special_tokens_map.json", files.specialTokensMap],
  ] as const) {
    if (value !== undefined) await writeFileAtomic(join(folder, name), configText(value));
  }
  const { chatTemplate } = files;
  if (chatTemplate === undefined) return;
  const templates = typeof chatTemplate === "string" ? { default: chatTemplate } : chatTemplate;
  for (const [name, template] of Object.entries(templates)) {
    const path = name === "default" ? "chat_template.jinja" : join(namedTemplates, `${safeName(name)}.jinja`);
    await writeFileAtomic(join(folder, path), template);
  }
}

/** Python writes huge integers with all their digits and would read 1e+30 as a fraction. */
function configText(value: unknown): string {
  const spelled = JSON.stringify(
    value,
    (_, item: unknown) =>
      typeof item === "number" && Number.isInteger(item) && Math.abs(item) >= 1e21 ? `\u0000${BigInt(item)}` : item,
    2,
  );
  return `${spelled.replace(/"\\u0000(-?\d+)"/g, "$1")}\n`;
}

/** chat_template.jinja, the older chat_template.json, and named templates; undefined when there is none. */
async function readTemplates(folder: string): Promise<TokenizerFiles["chatTemplate"]> {
  const templates: Record<string, string> = {};
  const main = (await readTextFile(join(folder, "chat_template.jinja"))) ?? (await readJsonTemplate(folder));
  if (main !== undefined) templates.default = main;
  const names = await readdir(join(folder, namedTemplates)).catch(() => []);
  for (const name of names.filter((file) => file.endsWith(".jinja")).sort()) {
    const text = await readTextFile(join(folder, namedTemplates, name));
    if (text !== undefined) templates[name.slice(0, -".jinja".length)] = text;
  }
  const found = Object.keys(templates);
  if (found.length === 0) return undefined;
  return found.length === 1 && templates.default !== undefined ? templates.default : templates;
}

async function readJsonTemplate(folder: string): Promise<string | undefined> {
  const file = await readJson(join(folder, "chat_template.json")).catch(missingFile);
  return isObject(file) && typeof file.chat_template === "string" ? file.chat_template : undefined;
}

async function readTextFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    return missingFile(readFailure(path, error));
  }
}

/** Lets a file be missing; passes every other error on. */
function missingFile(error: unknown): undefined {
  if (error instanceof LlamaGymError && error.code === "FILE_NOT_FOUND") return undefined;
  throw error;
}

function noTokenizer(folder: string): LlamaGymError {
  return new LlamaGymError(
    "FILE_NOT_FOUND",
    `${folder} has no tokenizer.json. If it has another kind of tokenizer file, convert it once in Python: ` +
      "AutoTokenizer.from_pretrained(folder).save_pretrained(folder).",
  );
}

/** A template's name as a file name. */
function safeName(name: string): string {
  if (/^[\w.-]+$/.test(name) && !/^\.+$/.test(name)) return name;
  throw new LlamaGymError(
    "FILE_WRITE_FAILED",
    `The chat template's name ${JSON.stringify(name)} cannot be a file name. Use letters, digits, "_", "-" and ".".`,
  );
}
