import { listFilters } from "./filters/list-filters.js";
import { numberFilters } from "./filters/number-filters.js";
import { textFilters } from "./filters/text-filters.js";
import type { FilterFunction } from "./filters/define-filter.js";

/** Filters with Jinja's behavior, and Transformers' `tojson`. */
export const templateFilters: ReadonlyMap<string, FilterFunction> = new Map([
  ...textFilters,
  ...numberFilters,
  ...listFilters,
]);

/** Jinja's filters that chat templates do not use, and that are refused before rendering. */
export const unsupportedFilters: ReadonlySet<string> = new Set(["pprint", "random", "urlize", "wordwrap"]);
