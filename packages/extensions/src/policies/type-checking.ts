import { type ControllerDefinition, patchStatus } from '@keelson/controller-kit';
import type { GroupVersionKind, KindDefinition } from '@keelson/core';
import { type JsonSchema, jsonSchemaOf } from '@keelson/core/internal';
import { type policiesV1, ValidatingAdmissionPolicy } from '@keelson/kinds';
import { typeCheckVariables } from '../admission/expressions.ts';
import { CelCompileError, type CelField, type CelType, compileExpression, dynType, schemaType } from '../cel/index.ts';
import { variablesType, variableType } from './compiled-policy.ts';

/** Maximum number of kinds for which the expressions of a policy are checked. */
const maxKinds = 10;

/** The kinds of the server. */
export interface KnownKinds {
  kinds(): readonly KindDefinition[];
}

/**
 * Keeps `status.typeChecking` of policies: the type errors of expressions, when objects and parameters have the types
 * of their schemas. Policies apply regardless of the result. Source: `validating/typechecking.go` of k8s.io/apiserver.
 */
export function policyTypeChecking(registry: KnownKinds): ControllerDefinition<ValidatingAdmissionPolicy> {
  return {
    name: 'validatingadmissionpolicy-status-controller',
    kind: ValidatingAdmissionPolicy,
    reconcile: async (policy, run) => {
      const { generation } = policy.metadata;
      if (generation === undefined || generation <= (policy.status?.observedGeneration ?? 0)) return;
      const warnings = typeWarnings(policy, registry.kinds());
      const typeChecking = warnings.length > 0 ? { expressionWarnings: warnings } : {};
      await patchStatus(run, ValidatingAdmissionPolicy, policy, { observedGeneration: generation, typeChecking });
    },
  };
}

/** Type errors in the expressions of a policy, for each kind in its rules. */
export function typeWarnings(
  { spec = {} }: ValidatingAdmissionPolicy,
  kinds: readonly KindDefinition[],
): policiesV1.ExpressionWarning[] {
  const { paramKind, variables = [], validations = [] } = spec;
  const params = kinds.find(({ apiVersion, kind }) => apiVersion === paramKind?.apiVersion && kind === paramKind.kind);
  const paramsType = params && objectType(params);
  const scopes = namedKinds(spec.matchConstraints?.resourceRules ?? [], kinds).map((kind) => ({
    kind,
    types: scopeOf(objectType(kind), paramsType, variables),
  }));
  const warnings: policiesV1.ExpressionWarning[] = [];
  const check = (fieldRef: string, expression: string) => {
    const found = scopes.flatMap(({ kind, types }) => {
      const problem = problemOf(expression, types);
      return problem === undefined ? [] : [`${shown(kind)}: ${problem}\n`];
    });
    if (found.length > 0) warnings.push({ fieldRef, warning: found.join('\n') });
  };
  for (const [i, { expression, messageExpression }] of validations.entries()) {
    check(`spec.validations[${i}].expression`, expression);
    if (messageExpression) check(`spec.validations[${i}].messageExpression`, messageExpression);
  }
  return warnings;
}

function shown({ group, version, kind }: GroupVersionKind): string {
  return `${group}/${version}, Kind=${kind}`;
}

/** The kinds that the rules select by name. Rules with wildcards are ignored. */
function namedKinds(
  rules: readonly policiesV1.NamedRuleWithOperations[],
  kinds: readonly KindDefinition[],
): KindDefinition[] {
  const named = new Set<KindDefinition>();
  for (const { apiGroups = [], apiVersions = [], resources = [] } of rules) {
    if ([...apiGroups, ...apiVersions].some((text) => text.includes('*'))) continue;
    const plain = resources.filter((resource) => !/[*/]/.test(resource)).sort();
    let count = 0;
    for (const group of [...apiGroups].sort()) {
      for (const version of [...apiVersions].sort()) {
        for (const kind of plain.flatMap((resource) => kindsOf(kinds, group, version, resource))) {
          named.add(kind);
          if (++count === maxKinds) return sorted(named);
        }
      }
    }
  }
  return sorted(named);
}

/** The kinds of a resource. The core group matches every group, as in Kubernetes. */
function kindsOf(kinds: readonly KindDefinition[], group: string, version: string, resource: string): KindDefinition[] {
  return kinds.filter(
    (kind) =>
      (group === '' || kind.group === group) &&
      kind.version === version &&
      (kind.names.plural === resource || kind.names.singular === resource),
  );
}

function sorted(kinds: Iterable<KindDefinition>): KindDefinition[] {
  const key = ({ group, version, kind }: KindDefinition) => `${group}\0${version}\0${kind}`;
  return [...kinds].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

type Types = Readonly<Record<string, CelType>>;

function scopeOf(object: CelType, params: CelType | undefined, variables: readonly policiesV1.Variable[]): Types {
  const base = { ...typeCheckVariables(object), ...(params ? { params } : {}) };
  const fields = new Map<string, CelField>();
  const scope = () => ({ ...base, variables: variablesType(fields) });
  for (const { name, expression } of variables) {
    const compiled = compile(expression, scope());
    fields.set(name, { property: name, type: compiled instanceof Error ? dynType : variableType(compiled.type) });
  }
  return scope();
}

function compile(expression: string, variables: Types) {
  try {
    return compileExpression(expression, { variables });
  } catch (error) {
    if (error instanceof CelCompileError) return error;
    throw error;
  }
}

function problemOf(expression: string, types: Types): string | undefined {
  const compiled = compile(expression, types);
  return compiled instanceof Error ? compiled.message : undefined;
}

function objectType(kind: KindDefinition): CelType {
  const { $defs = {}, ...schema } = jsonSchemaOf(kind);
  return schemaType(resolved(schema, $defs, new Set()), true) ?? dynType;
}

const reference = '#/$defs/';

/** The schema with all references resolved. A recursive reference becomes an object without fields. */
function resolved(
  schema: JsonSchema,
  definitions: Readonly<Record<string, JsonSchema>>,
  above: ReadonlySet<string>,
): JsonSchema {
  const ref = schema.$ref ?? schema.allOf?.find(({ $ref }) => $ref !== undefined)?.$ref;
  if (ref !== undefined) {
    const name = ref.slice(reference.length);
    const target = definitions[name];
    if (target === undefined || above.has(name)) return { type: 'object' };
    return resolved(target, definitions, new Set(above).add(name));
  }
  const { properties, items, additionalProperties } = schema;
  const inside = (child: JsonSchema) => resolved(child, definitions, above);
  return {
    ...schema,
    ...(schema.format === 'int-or-string' ? { 'x-kubernetes-int-or-string': true } : {}),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, inside(child)])),
    }),
    ...(items && { items: inside(items) }),
    ...(typeof additionalProperties === 'object' ? { additionalProperties: inside(additionalProperties) } : {}),
  };
}
