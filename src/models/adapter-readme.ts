/**
 * Returns the README.md of an adapter whose base model PEFT cannot open by its name: the embedded
 * model or a GGUF file. Undefined for other base models.
 */
export function formatAdapterReadme(baseModelName: string, isEmbedded: boolean): string | undefined {
  if (!isEmbedded && !baseModelName.endsWith(".gguf")) return undefined;
  const base = isEmbedded ? "the model embedded in the npm package llamagym" : `the GGUF file \`${baseModelName}\``;
  return `# LoRA adapter

A PEFT adapter of ${base}. \`AutoPeftModelForCausalLM\` does not find this base model by its name.

To open the trained model in Python, merge the adapter into its base model (in this folder):

\`\`\`
npx llamagym merge . --output merged
\`\`\`

\`\`\`python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("merged")
tokenizer = AutoTokenizer.from_pretrained("merged")
\`\`\`
${isEmbedded ? EMBEDDED_BASE : GGUF_BASE}
Tested with transformers 4.57 and 5.23, peft 0.11 and 0.21.
`;
}

const EMBEDDED_BASE = `
To open the adapter separately, give the base model's folder in the package:

\`\`\`python
from peft import PeftModel

base = AutoModelForCausalLM.from_pretrained("node_modules/llamagym/models/llamagym-1m")
model = PeftModel.from_pretrained(base, ".")
\`\`\`
`;

const GGUF_BASE = `
To open the adapter separately, save the base model as a folder first, in JavaScript:

\`\`\`js
import { AutoModelForCausalLM } from "llamagym";

const base = await AutoModelForCausalLM.fromPretrained("FILE.gguf");
await base.savePretrained("base");
await base.close();
\`\`\`

\`\`\`python
from peft import PeftModel

model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained("base"), ".")
\`\`\`
`;
