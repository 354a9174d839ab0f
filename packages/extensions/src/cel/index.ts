export { CelBudgetError, CelCompileError, CelEvaluationError, CelResultTypeError, Fault } from './base/errors.ts';
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
  timestampType,
} from './base/types.ts';
export { type CelValue, MapValue, type Result, typeNameOf } from './base/values.ts';
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
export { escapeName, maxRequestBytes, schemaType, type TypeSchema } from './schema-type.ts';
