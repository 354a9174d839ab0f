import type { AccessAttributes, AccessDecision, AccessRules, Authorizer, UserInfo } from '@keelson/core';
import type { PolicyRule } from '@keelson/kinds';
import type { Grants, RbacIndex } from './rbac-index.ts';
import { accessRulesOf, allowsPath, coversResource, rulesAllow } from './rules.ts';

/** Total number of cached users and verdicts; when it is reached, the cache is emptied. */
const maxCached = 100_000;
/** Maximum length of the attributes of a request whose verdict is cached. */
const maxLength = 512;
/** Cached verdicts on one resource in one namespace, or on one path; kinds have fewer verbs and subresources. */
const maxVerdicts = 64;

/** The decisions for one verb on one resource in one namespace, or on one path. */
interface Verdict {
  /** Decisions for the resource names that rules contain. */
  readonly byName: ReadonlyMap<string, AccessDecision> | undefined;
  readonly otherwise: AccessDecision;
}

/** The cached rules and verdicts of one user. */
interface UserCache {
  readonly grants: Map<string, Grants>;
  readonly verdicts: Verdicts;
}

/** A verdict with the attributes by which it is distinguished from others on the same resource or path. */
interface CachedVerdict {
  readonly verb: string;
  readonly apiGroup: string;
  readonly subresource: string;
  readonly verdict: Verdict;
}

/**
 * Cached verdicts are found by namespace and resource, or by path, and then compared by the other attributes.
 * Assembling one key from all attributes takes twice as long.
 */
class Verdicts {
  /** Verdicts by namespace, then by resource. */
  readonly #resources = new Map<string, Map<string, CachedVerdict[]>>();
  readonly #paths = new Map<string, CachedVerdict[]>();

  find(attributes: AccessAttributes): Verdict | undefined {
    const { verb, apiGroup, subresource } = attributes;
    for (const each of this.#listOf(attributes) ?? [])
      if (each.verb === verb && each.apiGroup === apiGroup && each.subresource === subresource) return each.verdict;
    return undefined;
  }

  /** False when the verdict is not cached. */
  add(attributes: AccessAttributes, verdict: Verdict): boolean {
    const { verb, apiGroup, resource, subresource, namespace, path, isResourceRequest } = attributes;
    const texts = isResourceRequest ? [verb, apiGroup, resource, subresource, namespace] : [verb, path];
    if (texts.reduce((sum, text) => sum + text.length, 0) > maxLength) return false;
    const known = this.#listOf(attributes);
    if (known !== undefined && known.length >= maxVerdicts) return false;
    const list = known ?? [];
    list.push({ verb, apiGroup, subresource, verdict });
    if (known !== undefined) return true;
    if (!isResourceRequest) {
      this.#paths.set(path, list);
      return true;
    }
    const inNamespace = this.#resources.get(namespace) ?? new Map<string, CachedVerdict[]>();
    inNamespace.set(resource, list);
    this.#resources.set(namespace, inNamespace);
    return true;
  }

  #listOf({ isResourceRequest, namespace, resource, path }: AccessAttributes): CachedVerdict[] | undefined {
    return isResourceRequest ? this.#resources.get(namespace)?.get(resource) : this.#paths.get(path);
  }
}

const notLoadedText = 'RBAC: roles and bindings are not loaded yet';
const notLoaded: AccessDecision = { allowed: false, reason: notLoadedText };
const noOpinion: AccessDecision = { allowed: false };

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
    let verdict = cache.verdicts.find(attributes);
    if (verdict === undefined) {
      verdict = this.#verdictOn(attributes, user, cache);
      if (cache.verdicts.add(attributes, verdict)) this.#count();
    }
    return verdict.byName?.get(attributes.name) ?? verdict.otherwise;
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
      cache = { grants: new Map(), verdicts: new Verdicts() };
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
