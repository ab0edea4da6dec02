import type { JsonObject } from "../../../core/json.js";
import type { Tokenizer } from "../../text/tokenizer.js";

/** Private-use characters, which no template contains. */
const MARKS = { system: "\ue001", user: "\ue002", assistant: "\ue003" } as const;

type Role = keyof typeof MARKS;

/** Names of sampling settings in generation_config.json and in Ollama. */
const PARAMETERS: Readonly<Record<string, string>> = {
  temperature: "temperature",
  top_k: "top_k",
  top_p: "top_p",
  min_p: "min_p",
  repetition_penalty: "repeat_penalty",
};

/** Formats Ollama's Modelfile for a GGUF file in the same folder. */
export function formatModelfile(file: string, tokenizer: Tokenizer, generationConfig: JsonObject): string {
  const lines = [`FROM ./${file}`];
  lines.push(...describeTemplate(tokenizer));
  for (const id of tokenizer.eosTokenIds) lines.push(`PARAMETER stop ${JSON.stringify(tokenizer.idToToken(id))}`);
  for (const [name, parameter] of Object.entries(PARAMETERS)) {
    const value = generationConfig[name];
    if (typeof value === "number") lines.push(`PARAMETER ${parameter} ${value}`);
  }
  return `${lines.join("\n")}\n`;
}

/**
 * Translates a chat template to Go's language if it surrounds messages by constant text, the same
 * after all roles; for others, Ollama looks among its templates for one that resembles the GGUF
 * file's.
 */
function describeTemplate(tokenizer: Tokenizer): string[] {
  if (!tokenizer.chatTemplates.has("default")) return [];
  const render = (roles: readonly Role[], addGenerationPrompt = false) =>
    tokenizer.applyChatTemplate(
      roles.map((role) => ({ role, content: MARKS[role] })),
      { addGenerationPrompt },
    );
  try {
    const whole = render(["system", "user", "assistant", "user"]);
    const [beforeSystem, systemToUser, userToAssistant, , after] = whole.split(/[\ue001-\ue003]/u);
    const before = {
      system: beforeSystem,
      user: systemToUser.slice(after.length),
      assistant: userToAssistant.slice(after.length),
    };
    const wrap = (role: Role, content: string) => `${before[role]}${content}${after}`;
    const isConstant =
      (["system", "user", "assistant", "user"] as const).map((role) => wrap(role, MARKS[role])).join("") === whole;
    const single = render(["user"]);
    const [system, user] = [wrap("system", MARKS.system), wrap("user", MARKS.user)];
    const defaultSystem = single.slice(before.system.length, -(after + user).length);
    const hasDefault = single !== user;
    if (!isConstant || (hasDefault && single !== wrap("system", defaultSystem) + user) || system.includes('"""'))
      return [];
    const branches = Object.keys(MARKS).map(
      (role, i) => `{{ ${i === 0 ? "if" : "else if"} eq .Role "${role}" }}${wrap(role as Role, "{{ .Content }}")}`,
    );
    const prompt = render(["user"], true).slice(single.length);
    return [
      `TEMPLATE """{{ range .Messages }}${branches.join("")}{{ end }}{{ end }}${prompt}"""`,
      ...(hasDefault ? [`SYSTEM """${defaultSystem}"""`] : []),
    ];
  } catch {
    // Many templates refuse some order of roles.
    return [];
  }
}
