import { type KubeObject, type LabelSelector, labelSelectorOf } from '@keelson/core';
import type { policiesV1, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } from '@keelson/kinds';
import {
  type AdmissionExpression,
  admissionVariables,
  compileAdmission,
  MatchConditions,
  messageVariables,
} from '../admission/expressions.ts';
import {
  boolType,
  CelBudgetError,
  CelEvaluationError,
  type CelField,
  type CelType,
  type CelValue,
  type CostBudget,
  dynType,
  Fault,
  MapValue,
  nullType,
  type Result,
  stringType,
  structType,
} from '../cel/index.ts';

/** The requests that a policy or binding selects. */
export interface CompiledMatch {
  readonly rules: readonly policiesV1.NamedRuleWithOperations[];
  readonly excluded: readonly policiesV1.NamedRuleWithOperations[];
  readonly namespaces: LabelSelector;
  readonly objects: LabelSelector;
  readonly exact: boolean;
}

export function compileMatch(resources: policiesV1.MatchResources = {}): CompiledMatch {
  return {
    rules: resources.resourceRules ?? [],
    excluded: resources.excludeResourceRules ?? [],
    namespaces: labelSelectorOf(resources.namespaceSelector ?? {}),
    objects: labelSelectorOf(resources.objectSelector ?? {}),
    exact: resources.matchPolicy === 'Exact',
  };
}

export interface CompiledBinding {
  readonly name: string;
  readonly policyName: string;
  readonly match: CompiledMatch;
  readonly paramRef: policiesV1.ParamRef | undefined;
  readonly actions: readonly string[];
}

export function compileBinding({ metadata, spec = {} }: ValidatingAdmissionPolicyBinding): CompiledBinding {
  return {
    name: metadata?.name ?? '',
    policyName: spec.policyName ?? '',
    match: compileMatch(spec.matchResources),
    paramRef: spec.paramRef,
    actions: spec.validationActions ?? [],
  };
}

export interface CompiledValidation {
  readonly expression: AdmissionExpression;
  readonly message: string;
  readonly messageExpression: AdmissionExpression | undefined;
  readonly reason: string;
}

export interface CompiledAnnotation {
  readonly key: string;
  readonly expression: AdmissionExpression;
}

/** A policy with its expressions compiled. */
export interface CompiledPolicy {
  readonly name: string;
  readonly match: CompiledMatch;
  readonly ignoreFailure: boolean;
  readonly paramKind: policiesV1.ParamKind | undefined;
  readonly conditions: MatchConditions;
  readonly variables: ReadonlyMap<string, AdmissionExpression>;
  readonly validations: readonly CompiledValidation[];
  readonly annotations: readonly CompiledAnnotation[];
  /** All expressions with the paths of their fields, for the validation of the policy itself. */
  readonly expressions: readonly (readonly [path: string, expression: AdmissionExpression])[];
  /** True if an expression uses `namespaceObject`. The namespace is read only for such policies. */
  readonly usesNamespace: boolean;
}

type Types = Readonly<Record<string, CelType>>;

const variablesTypeName = 'kubernetes.variables';

/** The type of the CEL variable `variables`. */
export function variablesType(fields: ReadonlyMap<string, CelField>): CelType {
  return structType(variablesTypeName, new Map(fields));
}

/** The type of a policy variable whose expression has the given type. Structs become dynamic, as in Kubernetes. */
export function variableType(type: CelType): CelType {
  if (type.kind !== 'list' && type.kind !== 'map') {
    return type.kind === 'struct' || type.kind === 'opaque' || type.kind === 'type' ? dynType : type;
  }
  return { ...type, params: type.params.map(variableType) };
}

export function compilePolicy(policy: ValidatingAdmissionPolicy): CompiledPolicy {
  const { spec = {} } = policy;
  const { paramKind, failurePolicy } = spec;
  const params: Types = paramKind ? { params: dynType } : {};
  const expressions: (readonly [string, AdmissionExpression])[] = [];
  const add = (path: string, expression: AdmissionExpression): AdmissionExpression => {
    expressions.push([`spec.${path}`, expression]);
    return expression;
  };
  const conditions = new MatchConditions(spec.matchConditions, failurePolicy, { ...admissionVariables, ...params });
  for (const [i, expression] of conditions.expressions.entries()) add(`matchConditions[${i}].expression`, expression);
  const fields = new Map<string, CelField>();
  const compiled = new Map<string, AdmissionExpression>();
  const typesNow = (base: Types): Types => ({
    ...{ ...base, ...params },
    ...(spec.variables?.length ? { variables: variablesType(fields) } : {}),
  });
  for (const [i, { name, expression }] of (spec.variables ?? []).entries()) {
    const result = add(`variables[${i}].expression`, compileAdmission(expression, typesNow(admissionVariables)));
    compiled.set(name, result);
    fields.set(name, { property: name, type: result.compiled ? variableType(result.compiled.type) : dynType });
  }
  const types = typesNow(admissionVariables);
  const validations = (spec.validations ?? []).map(({ expression, message, messageExpression, reason }, i) => {
    const place = `validations[${i}]`;
    return {
      expression: add(`${place}.expression`, compileAdmission(expression, types, [boolType])),
      message: message?.trim() ?? '',
      messageExpression: messageExpression
        ? add(
            `${place}.messageExpression`,
            compileAdmission(messageExpression, typesNow(messageVariables), [stringType]),
          )
        : undefined,
      reason: reason ?? 'Invalid',
    };
  });
  const annotations = (spec.auditAnnotations ?? []).map(({ key, valueExpression }, i) => ({
    key,
    expression: add(
      `auditAnnotations[${i}].valueExpression`,
      compileAdmission(valueExpression.trim(), types, [stringType, nullType]),
    ),
  }));
  return {
    name: policy.metadata?.name ?? '',
    match: compileMatch(spec.matchConstraints),
    ignoreFailure: failurePolicy === 'Ignore',
    ...{ paramKind, conditions, validations, annotations, expressions },
    variables: compiled,
    usesNamespace: expressions.some(([, { source }]) => source.includes('namespaceObject')),
  };
}

/** The variables of a policy. Each is evaluated when an expression uses it for the first time. */
export class PolicyVariables extends MapValue {
  readonly #expressions: ReadonlyMap<string, AdmissionExpression>;
  readonly #bindings: Readonly<Record<string, unknown>>;
  readonly #budget: CostBudget;
  readonly #values = new Map<string, Result>();

  constructor({ variables }: CompiledPolicy, bindings: Readonly<Record<string, unknown>>, budget: CostBudget) {
    super();
    this.#expressions = variables;
    this.#bindings = bindings;
    this.#budget = budget;
  }

  override get typeName(): string {
    return variablesTypeName;
  }

  get size(): number {
    return this.#expressions.size;
  }

  keys(): Iterable<CelValue> {
    return this.#expressions.keys();
  }

  override has(key: CelValue): boolean {
    return typeof key === 'string' && this.#expressions.has(key);
  }

  get(key: CelValue): Result | undefined {
    if (typeof key !== 'string') return undefined;
    const expression = this.#expressions.get(key);
    if (expression === undefined) return undefined;
    let value = this.#values.get(key);
    if (value === undefined) {
      value = this.#evaluate(key, expression);
      this.#values.set(key, value);
    }
    return value;
  }

  #evaluate(name: string, { compiled, problem }: AdmissionExpression): Result {
    const failed = (why: string): Fault => new Fault(`composited variable "${name}" fails to evaluate: ${why}`);
    if (compiled === undefined) return failed(problem);
    try {
      return compiled.evaluate({ ...this.#bindings, variables: this }, this.#budget);
    } catch (error) {
      if (error instanceof CelEvaluationError && !(error instanceof CelBudgetError)) return failed(error.message);
      throw error;
    }
  }
}

/** A parameter object for expressions, with its apiVersion and kind added. */
export function paramsValue(param: KubeObject | undefined, kind: policiesV1.ParamKind | undefined): unknown {
  return param && kind ? { ...param, apiVersion: kind.apiVersion, kind: kind.kind } : null;
}
