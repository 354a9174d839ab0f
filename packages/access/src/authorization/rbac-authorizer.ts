import type { AccessAttributes, AccessDecision, AccessRules, Authorizer, UserInfo } from '@keelson/core';
import type { PolicyRule } from '@keelson/kinds';
import type { Grants, RbacIndex } from './rbac-index.ts';
import { accessRulesOf, allowsPath, coversResource, rulesAllow } from './rules.ts';

/** Total number of cached users and verdicts; when it is reached, the cache is emptied. */
const maxCached = 100_000;
/** Requests with longer attributes are not cached. */
const maxKeyLength = 512;

/** The decisions for one verb on one resource in one namespace, or on one path. */
interface Verdict {
  /** For names that a rule contains. */
  readonly byName: ReadonlyMap<string, AccessDecision> | undefined;
  readonly otherwise: AccessDecision;
}

/** The cached rules and verdicts of one user. */
interface UserCache {
  readonly grants: Map<string, Grants>;
  readonly verdicts: Map<string, Verdict>;
}

const notLoadedText = 'RBAC: roles and bindings are not loaded yet';
const notLoaded: AccessDecision = { allowed: false, reason: notLoadedText };
const noOpinion: AccessDecision = { allowed: false };

/** Different attributes have different keys, whatever characters clients send: the lengths separate the parts. */
function keyOf(attributes: AccessAttributes): string {
  const { verb, apiGroup, resource, subresource, namespace, path, isResourceRequest } = attributes;
  if (!isResourceRequest) return `path${verb.length}:${verb}${path}`;
  const lengths = `${verb.length}:${apiGroup.length}:${resource.length}:${subresource.length}:`;
  return `${lengths}${verb}${apiGroup}${resource}${subresource}${namespace}`;
}

function problemText(problems: readonly string[]): string {
  return problems.length === 1 ? (problems[0] ?? '') : `[${problems.join(', ')}]`;
}

/**
 * Decides by roles and bindings, with the semantics and reasons of the RBAC authorizer of Kubernetes. It only allows;
 * otherwise it has no opinion. Decisions are made from memory. Rules and verdicts of a user are cached until any role
 * or binding changes.
 */
export class RbacAuthorizer implements Authorizer {
  readonly #index: RbacIndex;
  readonly #isLoaded: () => boolean;
  #generation = -1;
  #byObject = new WeakMap<UserInfo, UserCache>();
  readonly #byText = new Map<string, UserCache>();
  #cached = 0;

  /** @param isLoaded false while the index is incomplete; then there is no opinion on any request */
  constructor(index: RbacIndex, isLoaded: () => boolean = () => true) {
    this.#index = index;
    this.#isLoaded = isLoaded;
  }

  authorize(attributes: AccessAttributes, user: UserInfo): AccessDecision {
    if (!this.#isLoaded()) return notLoaded;
    const cache = this.#cacheOf(user);
    const { name } = attributes;
    const key = keyOf(attributes);
    let verdict = cache.verdicts.get(key);
    if (verdict === undefined) {
      verdict = this.#verdictOn(attributes, user, cache);
      if (key.length <= maxKeyLength) {
        this.#count();
        cache.verdicts.set(key, verdict);
      }
    }
    return verdict.byName?.get(name) ?? verdict.otherwise;
  }

  rulesFor(user: UserInfo, namespace: string): AccessRules {
    const { rules, problems } = this.policyRulesOf(user, namespace);
    if (!this.#isLoaded()) return { ...accessRulesOf([]), incomplete: true, evaluationError: notLoadedText };
    return { ...accessRulesOf(rules), ...(problems.length === 0 ? {} : { evaluationError: problemText(problems) }) };
  }

  /** The rules of a user in a namespace, or, for '', those that apply everywhere. */
  policyRulesOf(user: UserInfo, namespace: string): { rules: PolicyRule[]; problems: string[] } {
    const scopes = this.#scopesOf(user, namespace, this.#cacheOf(user));
    return {
      rules: scopes.flatMap(({ grants }) => grants.flatMap(({ rules }) => rules)),
      problems: scopes.flatMap(({ problems }) => problems),
    };
  }

  #verdictOn(attributes: AccessAttributes, user: UserInfo, cache: UserCache): Verdict {
    const scopes = this.#scopesOf(user, attributes.namespace, cache);
    const byName = new Map<string, AccessDecision>();
    for (const { source, rules } of scopes.flatMap(({ grants }) => grants)) {
      const { resourceRules, nonResourceRules } = accessRulesOf(rules);
      const allowed = { allowed: true, reason: `RBAC: allowed by ${source}` };
      if (!attributes.isResourceRequest) {
        if (nonResourceRules.some((rule) => allowsPath(rule, attributes))) {
          return { byName: undefined, otherwise: allowed };
        }
        continue;
      }
      for (const rule of resourceRules) {
        if (!coversResource(rule, attributes)) continue;
        if (!rule.resourceNames?.length) return { byName: byName.size > 0 ? byName : undefined, otherwise: allowed };
        for (const name of rule.resourceNames) if (!byName.has(name)) byName.set(name, allowed);
      }
    }
    const problems = scopes.flatMap((scope) => scope.problems);
    const otherwise = problems.length === 0 ? noOpinion : { ...noOpinion, reason: `RBAC: ${problemText(problems)}` };
    return { byName: byName.size > 0 ? byName : undefined, otherwise };
  }

  #scopesOf(user: UserInfo, namespace: string, cache: UserCache): Grants[] {
    return (namespace === '' ? [''] : ['', namespace]).map((scope) => {
      let grants = cache.grants.get(scope);
      if (grants === undefined) {
        grants = this.#index.grantsOf(user, scope);
        this.#count();
        cache.grants.set(scope, grants);
      }
      return grants;
    });
  }

  #cacheOf(user: UserInfo): UserCache {
    if (this.#generation !== this.#index.generation) this.#clear();
    let cache = this.#byObject.get(user);
    if (cache !== undefined) return cache;
    const text = JSON.stringify([user.name, ...user.groups]);
    cache = this.#byText.get(text);
    if (cache === undefined) {
      this.#count();
      cache = { grants: new Map(), verdicts: new Map() };
      this.#byText.set(text, cache);
    }
    this.#byObject.set(user, cache);
    return cache;
  }

  #count(): void {
    this.#cached += 1;
    if (this.#cached > maxCached) this.#clear();
  }

  #clear(): void {
    this.#generation = this.#index.generation;
    this.#byObject = new WeakMap();
    this.#byText.clear();
    this.#cached = 0;
  }
}

/** The first rule of a role that allows a request, or undefined. */
export function allowingRule(rules: readonly PolicyRule[], attributes: AccessAttributes): PolicyRule | undefined {
  return rules.find((rule) => rulesAllow(accessRulesOf([rule]), attributes));
}
