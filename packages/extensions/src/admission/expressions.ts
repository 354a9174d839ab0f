import type { AdmissionRequest, Authorizer, KubeObject } from '@keelson/core';
import type { MatchCondition } from '@keelson/kinds';
import {
  AuthorizerValue,
  authorizerType,
  boolType,
  CelBudgetError,
  CelCompileError,
  CelEvaluationError,
  type CelField,
  CelResultTypeError,
  type CelType,
  type CelValue,
  type CompiledExpression,
  CostBudget,
  compileExpression,
  dynType,
  intType,
  listType,
  mapType,
  resourceCheckType,
  stringType,
  structType,
  timestampType,
} from '../cel/index.ts';

function struct(name: string, fields: Readonly<Record<string, CelType>>): CelType {
  const entries = Object.entries(fields).map(([field, type]): [string, CelField] => [field, { property: field, type }]);
  return structType(`kubernetes.${name}`, new Map(entries));
}

const texts = listType(stringType);
const labels = mapType(stringType, stringType);
const kindType = struct('GroupVersionKind', { group: stringType, version: stringType, kind: stringType });
const resourceType = struct('GroupVersionResource', { group: stringType, version: stringType, resource: stringType });
const userType = struct('UserInfo', {
  ...{ username: stringType, uid: stringType, groups: texts },
  extra: mapType(stringType, texts),
});
const requestType = struct('AdmissionRequest', {
  ...{ kind: kindType, resource: resourceType, subResource: stringType },
  ...{ requestKind: kindType, requestResource: resourceType, requestSubResource: stringType },
  ...{ name: stringType, namespace: stringType, operation: stringType, userInfo: userType },
  ...{ dryRun: boolType, options: dynType },
});
const namespaceType = struct('Namespace', {
  metadata: struct('NamespaceMetadata', {
    ...{ name: stringType, generateName: stringType, namespace: stringType, labels, annotations: labels },
    ...{ UID: stringType, creationTimestamp: timestampType, deletionTimestamp: timestampType },
    ...{ deletionGracePeriodSeconds: intType, generation: intType, resourceVersion: stringType, finalizers: texts },
  }),
  spec: struct('NamespaceSpec', { finalizers: texts }),
  status: struct('NamespaceStatus', {
    conditions: listType(
      struct('NamespaceCondition', {
        ...{ status: stringType, type: stringType, lastTransitionTime: timestampType },
        ...{ message: stringType, reason: stringType },
      }),
    ),
    phase: stringType,
  }),
});

const withoutAuthorizer = { object: dynType, oldObject: dynType, request: requestType, namespaceObject: namespaceType };

/** The variables of expressions about requests, and their types. */
export const admissionVariables = {
  ...withoutAuthorizer,
  authorizer: authorizerType,
  'authorizer.requestResource': resourceCheckType,
};

/** The variables of expressions without access to the authorizer, and their types. */
export const messageVariables = withoutAuthorizer;

/** The variables for type checking, where `object` and `oldObject` have the type of their schema. */
export function typeCheckVariables(object: CelType): Readonly<Record<string, CelType>> {
  return { ...withoutAuthorizer, object, oldObject: object, authorizer: authorizerType };
}

/** The request that expressions examine. */
export interface ExaminedRequest {
  readonly request: AdmissionRequest;
  /** The object in the API version that the matching rule selects. */
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  /** The fields of `request` in an AdmissionReview. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The values of the variables in {@link admissionVariables}. */
export function admissionBindings(
  { request, object, oldObject, fields }: ExaminedRequest,
  authorizer: Authorizer,
  namespace?: KubeObject,
): Record<string, unknown> {
  const user = new AuthorizerValue(request.context.user, authorizer);
  const { kind, name, subresource = '' } = request;
  return {
    object: object ?? null,
    oldObject: oldObject ?? null,
    request: fields,
    namespaceObject: namespace ?? null,
    authorizer: user,
    'authorizer.requestResource': user.resource({
      ...{ apiGroup: kind.group, resource: kind.names.plural, subresource, name },
      namespace: request.namespace ?? '',
    }),
  };
}

/** An expression of a webhook or policy. If its compilation failed, every evaluation returns an error. */
export interface AdmissionExpression {
  readonly source: string;
  readonly compiled: CompiledExpression | undefined;
  /** The compilation error; empty for a valid expression. */
  readonly problem: string;
}

export function compileAdmission(
  source: string,
  variables: Readonly<Record<string, CelType>>,
  resultTypes?: readonly CelType[],
): AdmissionExpression {
  try {
    const compiled = compileExpression(source, { variables, ...(resultTypes ? { resultTypes } : {}) });
    return { source, compiled, problem: '' };
  } catch (error) {
    if (error instanceof CelCompileError) {
      return { source, compiled: undefined, problem: `compilation failed: ${error.message}` };
    }
    if (error instanceof CelResultTypeError) return { source, compiled: undefined, problem: error.message };
    throw error;
  }
}

/** Compiles a match condition of a webhook. */
export function compileCondition(source: string): AdmissionExpression {
  return compileAdmission(source, admissionVariables, [boolType]);
}

/** The error when the expressions of a request together exceed the cost budget. */
export class OutOfBudget extends Error {
  constructor() {
    super('validation failed due to running out of cost budget, no further validation rules will be run');
  }
}

export type Evaluation = { readonly value: CelValue } | { readonly error: string };

/** The value of an expression, or the error of its evaluation. Throws {@link OutOfBudget}. */
export async function evaluateAdmission(
  { source, compiled, problem }: AdmissionExpression,
  bindings: Readonly<Record<string, unknown>>,
  budget: CostBudget,
): Promise<Evaluation> {
  if (compiled === undefined) return { error: `compilation error: ${problem}` };
  try {
    const value = await compiled.evaluateAsync(bindings, budget);
    if (budget.remaining < 0) throw new OutOfBudget();
    return { value };
  } catch (error) {
    if (error instanceof CelBudgetError && budget.remaining < 0) throw new OutOfBudget();
    if (error instanceof CelEvaluationError) {
      return { error: `expression '${source}' resulted in error: ${error.message}` };
    }
    throw error;
  }
}

/** The cost budget of all match conditions of one webhook or policy, as in Kubernetes. */
const matchConditionsBudget = 2_500_000;

/** The match conditions of a webhook or policy. */
export class MatchConditions {
  readonly expressions: readonly AdmissionExpression[];
  readonly #ignoreFailure: boolean;

  constructor(
    conditions: readonly MatchCondition[] = [],
    failurePolicy: string | undefined,
    variables: Readonly<Record<string, CelType>> = admissionVariables,
  ) {
    this.expressions = conditions.map(({ expression }) => compileAdmission(expression, variables, [boolType]));
    this.#ignoreFailure = failurePolicy === 'Ignore';
  }

  /**
   * Evaluates the conditions. One false condition means no match, even if other conditions failed. Otherwise a failure
   * returns the error with which the request must be denied, unless the failure policy is Ignore.
   */
  async match(bindings: Readonly<Record<string, unknown>>): Promise<{ matches: boolean; error?: string }> {
    const budget = new CostBudget(matchConditionsBudget);
    const errors: string[] = [];
    try {
      for (const expression of this.expressions) {
        const result = await evaluateAdmission(expression, bindings, budget);
        if ('error' in result) errors.push(result.error);
        else if (result.value === false) return { matches: false };
      }
    } catch (error) {
      if (!(error instanceof OutOfBudget)) throw error;
      errors.splice(0, errors.length, error.message);
    }
    if (errors.length === 0) return { matches: true };
    if (this.#ignoreFailure) return { matches: false };
    const unique = [...new Set(errors)];
    return { matches: false, error: unique.length === 1 ? (unique[0] ?? '') : `[${unique.join(', ')}]` };
  }
}
