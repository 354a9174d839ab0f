export { CelBudgetError, CelCompileError, CelEvaluationError, CelResultTypeError } from './base/errors.ts';
export {
  boolType,
  type CelField,
  type CelType,
  dynType,
  intType,
  listType,
  mapType,
  nullType,
  optionalType,
  stringType,
  structType,
} from './base/types.ts';
export type { CelValue } from './base/values.ts';
export {
  CompiledExpression,
  type CompileOptions,
  CostBudget,
  compileExpression,
  perCallCostLimit,
  perRequestCostLimit,
} from './compile.ts';
export { plainValue, toCelValue } from './json-values.ts';
export { AuthorizerValue, authorizerType, resourceCheckType } from './library/authorizer.ts';
export { escapeName, schemaType, type TypeSchema } from './schema-type.ts';
