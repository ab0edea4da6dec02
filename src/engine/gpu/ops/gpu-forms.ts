import type { OperationName } from "../../graph/ops/operations.js";
import { elementwiseForms } from "./elementwise.js";
import type { GpuForm } from "./form.js";
import { indexingForms } from "./indexing.js";
import { layoutForms } from "./layout.js";
import { leafForms } from "./leaves.js";
import { normForms } from "./norm.js";
import { productForms } from "./products.js";
import { reduceForms } from "./reduce.js";
import { dropout, rotary } from "./rotary.js";
import { tokenLogProbs } from "./token-log-probs.js";

/** The form of every operation; one without a form does not compile. */
export const gpuForms: { readonly [Name in OperationName]: GpuForm<never> } = {
  ...leafForms,
  ...elementwiseForms,
  ...layoutForms,
  ...indexingForms,
  ...reduceForms,
  ...productForms,
  ...normForms,
  rotary,
  dropout,
  tokenLogProbs,
};
