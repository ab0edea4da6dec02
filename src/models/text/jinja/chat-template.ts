import { parse, tokenize } from "@huggingface/jinja";

import { LlamaGymError } from "../../../core/errors.js";
import { TemplateError, createTemplateScope } from "./template-scope.js";
import { TemplateInterpreter } from "./template-interpreter.js";
import { markOutputs } from "./nodes.js";
import { toPythonString } from "./python-text.js";
import { generationMarks, hasGenerationTags, prepareSource } from "./prepare-source.js";

/** What a template is rendered with. */
export interface TemplateInput {
  /** Names that the template sees: messages, add_generation_prompt, tools, bos_token, ... null is Python's None. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** The time that strftime_now tells; the present by default. */
  readonly now?: Date;
}

/** A rendered template with the parts that {% generation %} blocks printed, as [start, end) positions in the text. */
export interface RenderedTemplate {
  readonly text: string;
  readonly generated: readonly (readonly [start: number, end: number])[];
}

/**
 * A chat template: Jinja with trim_blocks and lstrip_blocks, raise_exception, strftime_now, tojson, loop controls and
 * {% generation %}, as Transformers renders it. Parsed once, rendered often.
 */
export class ChatTemplate {
  /** Whether the template marks what the assistant generates. */
  readonly marksGeneration: boolean;
  private readonly program: ReturnType<typeof parse>;

  /** Throws TEMPLATE_FAILED for what is not a template. */
  constructor(readonly source: string) {
    this.marksGeneration = hasGenerationTags(source);
    try {
      this.program = parse(tokenize(prepareSource(source), { trim_blocks: false, lstrip_blocks: false }));
    } catch (cause) {
      throw new LlamaGymError("TEMPLATE_FAILED", `The chat template is not valid Jinja: ${getReason(cause)}.`, {
        cause,
      });
    }
    markOutputs(this.program.body);
  }

  /** The template's text. Throws TEMPLATE_FAILED; its `cause` has the template's own message where it raised one. */
  render(input: TemplateInput): string {
    return this.run(input, "", "");
  }

  /** The template's text and which parts of it {% generation %} marks. Throws as `render`. */
  renderMarked(input: TemplateInput): RenderedTemplate {
    const text = this.render(input);
    if (!this.marksGeneration) return { text, generated: [] };
    const [open, close] = uniquePlaceholders(text);
    const marked = this.run(input, open, close);
    const generated: [number, number][] = [];
    let removed = 0;
    let start = 0;
    for (let i = 0; i < marked.length; i++) {
      if (marked[i] === open) start = i - removed++;
      else if (marked[i] === close) generated.push([start, i - removed++]);
    }
    return { text, generated };
  }

  private run({ variables, now }: TemplateInput, open: string, close: string): string {
    const marks = { [generationMarks.open]: open, [generationMarks.close]: close };
    const scope = createTemplateScope({ ...variables, ...marks }, () => now ?? new Date());
    try {
      return toPythonString(new TemplateInterpreter(scope).run(this.program));
    } catch (cause) {
      const outcome = cause instanceof TemplateError ? "refused the conversation" : "failed";
      throw new LlamaGymError("TEMPLATE_FAILED", `The chat template ${outcome}: ${getReason(cause)}.`, { cause });
    }
  }
}

/** Two characters that stand nowhere in the text: noncharacters, which text is not meant to have. */
export function uniquePlaceholders(text: string): [string, string] {
  const placeholders: string[] = [];
  for (let code = 0xfdd0; code <= 0xfdef && placeholders.length < 2; code++) {
    const placeholder = String.fromCharCode(code);
    if (!text.includes(placeholder)) placeholders.push(placeholder);
  }
  if (placeholders.length < 2)
    throw new LlamaGymError(
      "TEMPLATE_FAILED",
      "The text uses all noncharacters, so {% generation %} cannot be marked.",
    );
  return [placeholders[0], placeholders[1]];
}

function getReason(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, "");
}
