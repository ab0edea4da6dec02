import { LlamaGymError } from "../../core/errors.js";
import type { PolicyBackend } from "../../generation/index.js";

interface AlgorithmTraits {
  readonly name: string;
  readonly title?: string;
  readonly critic?: boolean;
  readonly klSetting?: string;
}

/** Whether the algorithm compares with the reference policy. */
export function usesReference({ klSetting }: { readonly klSetting?: string }, config: object): boolean {
  return klSetting !== undefined && Number((config as Readonly<Record<string, unknown>>)[klSetting]) > 0;
}

/** Whether the reference policy is a copy of the trained parameters. */
export function copiesReference({ syncRefModel = false }: { readonly syncRefModel?: boolean }): boolean {
  return syncRefModel;
}

/** @throws INVALID_STATE for a model that the algorithm cannot train. */
export function checkModel(model: PolicyBackend, algorithm: AlgorithmTraits, config: object): void {
  const { name, title = name, critic = false, klSetting } = algorithm;
  const openHint = critic
    ? "Open it with AutoModelForCausalLMWithValueHead.fromPretrained"
    : "Open it with AutoModelForCausalLM.fromPretrained and add an adapter with getPeftModel";
  const problem = !model.isTrainable
    ? `it has no trainable parameters. ${openHint}`
    : critic && model.valueHead === undefined
      ? `it has no value head. ${openHint}`
      : !critic && model.valueHead !== undefined
        ? `it has a value head, which the algorithm would not train. ${openHint}`
        : usesReference(algorithm, config) && !model.hasAdapter && !copiesReference(config)
          ? `${klSetting} weighs the KL to the model without its adapter, but it has no adapter. Set ${klSetting} to 0, or train an adapter`
          : copiesReference(config) && model.causalLM === undefined
            ? "`syncRefModel` copies its parameters, which a service does not return. Set it to false, or train in this process"
            : undefined;
  if (problem !== undefined) throw new LlamaGymError("INVALID_STATE", `${title} cannot train the model: ${problem}.`);
}
