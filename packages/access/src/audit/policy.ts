import { type AccessAttributes, type Infer, optional, s, typeMetaFields, type UserInfo } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import { parseConfig } from '../read-config.ts';

const levels = ['None', 'Metadata', 'Request', 'RequestResponse'] as const;
const stages = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const;

/** How much of a request is recorded. */
export type AuditLevel = (typeof levels)[number];
/** A point of the handling of a request that is recorded. */
export type AuditStage = (typeof stages)[number];

const texts = s.list(s.string());

const resourcesSchema = s.message('keelson.audit.GroupResources', 'Resources of one API group.', {
  group: optional(undefined, s.string(), 'API group; empty for the core group.'),
  resources: optional(undefined, texts, 'Plurals, with subresources as in pods/log, pods/*, */scale; empty: all.'),
  resourceNames: optional(undefined, texts, 'Names of objects; empty: all.'),
});

const ruleSchema = s.message('keelson.audit.PolicyRule', 'A rule; the first that matches a request applies.', {
  level: optional(undefined, s.string(), 'None, Metadata, Request or RequestResponse.'),
  users: optional(undefined, texts, 'Names of users; empty: all.'),
  userGroups: optional(undefined, texts, 'Groups of users; empty: all.'),
  verbs: optional(undefined, texts, 'Verbs; empty: all.'),
  resources: optional(undefined, s.list(resourcesSchema), 'Resources; empty: all.'),
  namespaces: optional(undefined, texts, 'Namespaces; the empty text for cluster-scoped resources.'),
  nonResourceURLs: optional(undefined, texts, 'Paths; * at the end stands for anything that follows.'),
  omitStages: optional(undefined, texts, 'Stages without events.'),
  omitManagedFields: optional(undefined, s.bool(), 'Leave out metadata.managedFields of recorded objects.'),
});

const policySchema = s.message('keelson.audit.Policy', 'Which requests are recorded, and how much of them.', {
  ...typeMetaFields,
  metadata: optional(undefined, s.any(), 'Ignored.'),
  rules: optional(undefined, s.list(ruleSchema), 'Checked in order.'),
  omitStages: optional(undefined, texts, 'Stages without events, for all rules.'),
  omitManagedFields: optional(undefined, s.bool(), 'Default of the rules.'),
});

type RuleFields = Infer<typeof ruleSchema>;
type ResourceFields = Infer<typeof resourcesSchema>;

/** What is recorded of a request. */
export interface AuditDecision {
  readonly level: AuditLevel;
  readonly omitStages: ReadonlySet<AuditStage>;
  readonly omitManagedFields: boolean;
}

interface Rule {
  readonly users: readonly string[];
  readonly userGroups: readonly string[];
  readonly verbs: readonly string[];
  readonly resources: readonly ResourceFields[];
  readonly namespaces: readonly string[];
  readonly nonResourceURLs: readonly string[];
  readonly decision: AuditDecision;
}

/** Resources that contain credentials: their contents are never recorded, whatever the policy contains. */
const credentials: ReadonlySet<string> = new Set([
  '/secrets',
  '/serviceaccounts/token',
  'authentication.k8s.io/tokenreviews',
]);

const credentialPlurals: ReadonlySet<string> = new Set(['secrets', 'serviceaccounts', 'tokenreviews']);

/** True when bodies of requests on this resource may contain credentials. */
export function holdsCredentials({ isResourceRequest, apiGroup, resource, subresource }: AccessAttributes): boolean {
  if (!isResourceRequest || !credentialPlurals.has(resource)) return false;
  const name = subresource === '' || resource === 'secrets' ? resource : `${resource}/${subresource}`;
  return credentials.has(`${apiGroup}/${name}`);
}

/** An audit policy: see docs/how-to/audit.md#write-a-policy. */
export class AuditPolicy {
  readonly #rules: readonly Rule[];
  readonly #otherwise: AuditDecision;

  constructor(rules: readonly Rule[], otherwise: AuditDecision) {
    this.#rules = rules;
    this.#otherwise = otherwise;
  }

  /** The decision of the first matching rule. Without one nothing is recorded. */
  decide(attributes: AccessAttributes, user: UserInfo | undefined): AuditDecision {
    for (const rule of this.#rules) if (matches(rule, attributes, user)) return rule.decision;
    return this.#otherwise;
  }
}

/** Parses a policy of `audit.k8s.io/v1`. @throws UsageError with the field of the first error */
export function parseAuditPolicy(bytes: Buffer, source: string): AuditPolicy {
  const type = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', schema: policySchema };
  const policy = parseConfig(bytes, type, source);
  const { rules = [] } = policy;
  if (rules.length === 0) throw new UsageError(`${source} has no rules, so nothing would be recorded`);
  const omitStages = stagesOf(policy.omitStages, `${source}: omitStages`);
  const compiled = rules.map((rule, i): Rule => {
    const at = `${source}: rules[${i}]`;
    checkPaths(rule, at);
    for (const [j, resources] of (rule.resources ?? []).entries()) checkResources(resources, `${at}.resources[${j}]`);
    return {
      users: rule.users ?? [],
      userGroups: rule.userGroups ?? [],
      verbs: rule.verbs ?? [],
      resources: rule.resources ?? [],
      namespaces: rule.namespaces ?? [],
      nonResourceURLs: rule.nonResourceURLs ?? [],
      decision: {
        level: levelOf(rule.level, `${at}.level`),
        omitStages: new Set([...omitStages, ...stagesOf(rule.omitStages, `${at}.omitStages`)]),
        omitManagedFields: rule.omitManagedFields ?? policy.omitManagedFields ?? false,
      },
    };
  });
  return new AuditPolicy(compiled, { level: 'None', omitStages: new Set(omitStages), omitManagedFields: false });
}

function levelOf(level: string | undefined, at: string): AuditLevel {
  const known = levels.find((candidate) => candidate === level);
  if (known !== undefined) return known;
  const given = level === undefined || level === '' ? 'it is missing' : `not ${JSON.stringify(level)}`;
  throw new UsageError(`${at} must be one of ${levels.join(', ')}; ${given}`);
}

function stagesOf(given: readonly string[] | undefined, at: string): AuditStage[] {
  return (given ?? []).map((stage, i) => {
    const known = stages.find((candidate) => candidate === stage);
    if (known === undefined)
      throw new UsageError(`${at}[${i}] must be one of ${stages.join(', ')}, not ${JSON.stringify(stage)}`);
    return known;
  });
}

function checkPaths({ nonResourceURLs = [], resources = [], namespaces = [] }: RuleFields, at: string): void {
  if (nonResourceURLs.length === 0) return;
  if (resources.length > 0 || namespaces.length > 0)
    throw new UsageError(`${at}: rules cannot apply to both regular resources and non-resource URLs`);
  for (const [i, url] of nonResourceURLs.entries()) {
    if (url === '*') continue;
    if (!url.startsWith('/'))
      throw new UsageError(`${at}.nonResourceURLs[${i}]: non-resource URL rules must begin with a '/' character`);
    if (url.slice(0, -1).includes('*'))
      throw new UsageError(
        `${at}.nonResourceURLs[${i}]: non-resource URL wildcards '*' must be the final character of the rule`,
      );
  }
}

function checkResources({ group = '', resources = [], resourceNames = [] }: ResourceFields, at: string): void {
  if (group !== '' && !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(group))
    throw new UsageError(`${at}.group must be an API group without a version, such as apps, not "${group}"`);
  if (resourceNames.length > 0 && resources.length === 0)
    throw new UsageError(`${at}.resourceNames: using resourceNames requires at least one resource`);
}

const has = (list: readonly string[], value: string) => list.length === 0 || list.includes(value);

function matches(rule: Rule, attributes: AccessAttributes, user: UserInfo | undefined): boolean {
  const { users, userGroups, namespaces, resources, nonResourceURLs } = rule;
  if (users.length > 0 && (user === undefined || !users.includes(user.name))) return false;
  if (userGroups.length > 0 && !user?.groups.some((group) => userGroups.includes(group))) return false;
  if (!has(rule.verbs, attributes.verb)) return false;
  if (namespaces.length > 0 || resources.length > 0) {
    if (!attributes.isResourceRequest || !has(namespaces, attributes.namespace)) return false;
    return resources.length === 0 || resources.some((each) => matchesResource(each, attributes));
  }
  if (nonResourceURLs.length === 0) return true;
  return !attributes.isResourceRequest && nonResourceURLs.some((spec) => matchesPath(spec, attributes.path));
}

function matchesPath(spec: string, path: string): boolean {
  return spec === path || (spec.endsWith('*') && path.startsWith(spec.slice(0, -1)));
}

function matchesResource(rule: ResourceFields, { apiGroup, resource, subresource, name }: AccessAttributes): boolean {
  const { group = '', resources = [], resourceNames = [] } = rule;
  if (group !== apiGroup) return false;
  if (resources.length === 0) return true;
  if (!has(resourceNames, name)) return false;
  const full = subresource === '' ? resource : `${resource}/${subresource}`;
  return resources.some(
    (each) =>
      each === full ||
      each === '*' ||
      each === `${resource}/*` ||
      (subresource !== '' && each.startsWith('*/') && each.slice(2) === subresource),
  );
}
