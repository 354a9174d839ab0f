import { readFile } from 'node:fs/promises';
import type { AccessAttributes, AccessRules, Authorizer, UserInfo } from '@keelson/core';
import { isJsonObject, UsageError } from '@keelson/core/internal';
import { allowsPath } from './rules.ts';

/** One line of a policy file. An absent property matches nothing but ''. */
interface Policy {
  readonly user: string;
  readonly group: string;
  readonly readonly: boolean;
  readonly apiGroup: string;
  readonly resource: string;
  readonly namespace: string;
  readonly nonResourcePath: string;
}

const apiVersion = 'abac.authorization.kubernetes.io/v1beta1';
const texts = ['user', 'group', 'apiGroup', 'resource', 'namespace', 'nonResourcePath'] as const;
const example = '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"jane"}}';
const readVerbs = ['get', 'list', 'watch'];

/** @throws UsageError */
function unknownField(object: Record<string, unknown>, known: readonly string[], where: string): void {
  const field = Object.keys(object).find((name) => !known.includes(name));
  if (field !== undefined) throw new UsageError(`${where}: unknown field ${field}; the fields are ${known.join(', ')}`);
}

/** @throws UsageError */
function parseLine(line: string, where: string): Policy {
  let document: unknown;
  try {
    document = JSON.parse(line);
  } catch (error) {
    throw new UsageError(`${where}: not valid JSON: ${(error as Error).message}`);
  }
  if (!isJsonObject(document)) throw new UsageError(`${where}: must be an object such as ${example}`);
  unknownField(document, ['apiVersion', 'kind', 'spec'], where);
  if (document['apiVersion'] !== apiVersion) throw new UsageError(`${where}: apiVersion must be ${apiVersion}`);
  if (document['kind'] !== 'Policy') throw new UsageError(`${where}: kind must be Policy`);
  const { spec } = document;
  if (!isJsonObject(spec)) throw new UsageError(`${where}: spec must be an object`);
  unknownField(spec, [...texts, 'readonly'], `${where}, spec`);
  const text = (field: (typeof texts)[number]): string => {
    const value = spec[field] ?? '';
    if (typeof value !== 'string') throw new UsageError(`${where}: spec.${field} must be a text`);
    return value;
  };
  const { readonly = false } = spec;
  if (typeof readonly !== 'boolean') throw new UsageError(`${where}: spec.readonly must be true or false`);
  const everybody = text('user') === '*' || text('group') === '*';
  const policy = {
    user: everybody ? '' : text('user'),
    group: everybody ? 'system:authenticated' : text('group'),
    readonly,
    apiGroup: text('apiGroup'),
    resource: text('resource'),
    namespace: text('namespace'),
    nonResourcePath: text('nonResourcePath'),
  };
  if (policy.user === '' && policy.group === '') throw new UsageError(`${where}: spec needs a user or a group`);
  if (policy.resource === '' && policy.nonResourcePath === '')
    throw new UsageError(`${where}: spec needs a resource or a nonResourcePath`);
  return policy;
}

function appliesTo({ user, group }: Policy, { name, groups }: UserInfo): boolean {
  return (user === '' || user === name) && (group === '' || groups.includes(group));
}

const matches = (pattern: string, value: string): boolean => pattern === '*' || pattern === value;

function allows(policy: Policy, attributes: AccessAttributes): boolean {
  const { verb, isResourceRequest, namespace, resource, apiGroup } = attributes;
  if (policy.readonly && !readVerbs.includes(verb)) return false;
  if (!isResourceRequest) return allowsPath({ verbs: ['*'], nonResourceURLs: [policy.nonResourcePath] }, attributes);
  return (
    matches(policy.namespace, namespace) && matches(policy.resource, resource) && matches(policy.apiGroup, apiGroup)
  );
}

/** The policies of a user as rules, for the namespace. */
function rulesOf(policies: readonly Policy[], namespace: string): AccessRules {
  const verbs = (policy: Policy) => (policy.readonly ? readVerbs : ['*']);
  return {
    resourceRules: policies
      .filter((policy) => policy.resource !== '' && matches(policy.namespace, namespace))
      .map((policy) => ({
        verbs: verbs(policy),
        apiGroups: [policy.apiGroup],
        resources: [policy.resource],
      })),
    nonResourceRules: policies
      .filter(({ nonResourcePath }) => nonResourcePath !== '')
      .map((policy) => ({ verbs: verbs(policy), nonResourceURLs: [policy.nonResourcePath] })),
    incomplete: false,
  };
}

/**
 * An authorizer that allows what a line of a policy file allows: JSON objects in the format of the ABAC mode of
 * Kubernetes (`abac.authorization.kubernetes.io/v1beta1`), one per line; blank lines and lines that begin with `#` are
 * ignored. A resource includes its subresources.
 *
 * @throws UsageError with the number of the line
 */
export function policyAuthorizer(content: string, source: string): Authorizer {
  const policies = content.split(/\r?\n/).flatMap((line, index) => {
    const trimmed = line.trim();
    return trimmed === '' || trimmed.startsWith('#') ? [] : [parseLine(trimmed, `${source}, line ${index + 1}`)];
  });
  if (policies.length === 0) throw new UsageError(`${source} contains no policy; a line is an object like ${example}`);
  return {
    authorize: (attributes, user) => ({
      allowed: policies.some((policy) => appliesTo(policy, user) && allows(policy, attributes)),
    }),
    rulesFor: (user, namespace) =>
      rulesOf(
        policies.filter((policy) => appliesTo(policy, user)),
        namespace,
      ),
  };
}

/** Reads a policy file. Changes take effect with the next start of the server. @throws UsageError */
export async function readPolicyFile(path: string, option: string): Promise<Authorizer> {
  const source = `${option} ${path}`;
  const content = await readFile(path, 'utf8').catch((error: Error) => {
    throw new UsageError(`${source} cannot be read: ${error.message}`);
  });
  return policyAuthorizer(content, source);
}
