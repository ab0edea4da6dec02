import { LlamaGymError } from "../../core/errors.js";
import { corruptFileError, type JsonRecord, isObject } from "./tokenization/tokenizer-json.js";

/**
 * Collects chat templates by name, the main one under "default". tokenizer_config.json has one
 * string or a list of named ones; a template from its own file takes precedence, as in
 * Transformers. @throws FILE_CORRUPT for a template that is no text.
 */
export function readChatTemplates(
  config: JsonRecord,
  templateFiles: string | Readonly<Record<string, string>> | undefined,
): Map<string, string> {
  const templates = readConfiguredTemplates(config.chat_template);
  const filesByName = typeof templateFiles === "string" ? { default: templateFiles } : (templateFiles ?? {});
  for (const [name, template] of Object.entries(filesByName)) templates.set(name, template);
  return templates;
}

function readConfiguredTemplates(value: unknown): Map<string, string> {
  if (value === undefined || value === null) return new Map();
  if (typeof value === "string") return new Map([["default", value]]);
  const fault = corruptFileError(
    "chat_template in tokenizer_config.json must be a text or a list of objects with the texts name and template.",
  );
  if (!Array.isArray(value)) throw fault;
  return new Map(
    value.map((entry: unknown) => {
      if (isObject(entry) && typeof entry.name === "string" && typeof entry.template === "string")
        return [entry.name, entry.template];
      throw fault;
    }),
  );
}

/**
 * Selects a template: the requested one (a name or template text), else "tool_use" if there are
 * tools and such a template, else "default". @throws TEMPLATE_FAILED when there is none.
 */
export function chooseTemplate(
  templates: ReadonlyMap<string, string>,
  requested: string | undefined,
  hasTools: boolean,
  tokenizerName: string,
): string {
  if (requested !== undefined) return templates.get(requested) ?? requested;
  const chosen = (hasTools ? templates.get("tool_use") : undefined) ?? templates.get("default");
  if (chosen !== undefined) return chosen;
  const names = Array.from(templates.keys());
  const problem =
    names.length > 0
      ? `has no default chat template, only ${names.join(", ")}. Name one`
      : "has no chat template, so it is a base model's or its files are incomplete. Use an instruct model, or pass a Jinja template";
  throw new LlamaGymError("TEMPLATE_FAILED", `The tokenizer ${tokenizerName} ${problem} as options.chatTemplate.`);
}

/**
 * Chat template of models without one: a transcript in which completions follow ">". New turns
 * leave earlier ones unchanged.
 */
export const FALLBACK_CHAT_TEMPLATE =
  "{% for message in messages %}{% if message.role == 'assistant' %}>{% endif %}{{ message.content }}{{ '\\n\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}>{% endif %}";
