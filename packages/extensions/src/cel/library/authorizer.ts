import {
  type AccessAttributes,
  type AccessDecision,
  type Authorizer,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  type UserInfo,
} from '@keelson/core';
import { Fault } from '../base/errors.ts';
import { type Functions, traversal } from '../base/functions.ts';
import * as t from '../base/types.ts';
import { OpaqueValue, type Result, sizeOf } from '../base/values.ts';

/** The high cost of an authorization check permits only two checks in one expression. */
const checkCost = 350_000;

/**
 * Thrown when an evaluation requires an authorization decision that is not available yet. The evaluation must be
 * repeated after `decided` has resolved.
 */
export class PendingDecision extends Error {
  readonly decided: Promise<void>;
  constructor(decided: Promise<void>) {
    super('authorization is pending');
    this.decided = decided;
  }
}

type Outcome = AccessDecision & { readonly error?: string };

/** Cached decisions of an authorizer about one user. */
class Decisions {
  readonly #authorizer: Authorizer;
  readonly #known = new Map<string, Outcome>();

  constructor(authorizer: Authorizer) {
    this.#authorizer = authorizer;
  }

  decide(attributes: AccessAttributes, user: UserInfo): Outcome {
    const key = JSON.stringify([attributes, user.name]);
    const known = this.#known.get(key);
    if (known) return known;
    const remember = (outcome: Outcome): Outcome => {
      this.#known.set(key, outcome);
      return outcome;
    };
    const failed = (error: unknown): Outcome => remember({ allowed: false, error: String(error) });
    try {
      const decision = this.#authorizer.authorize(attributes, user);
      if (!(decision instanceof Promise)) return remember(decision);
      throw new PendingDecision(decision.then(remember, failed).then(() => {}));
    } catch (error) {
      if (error instanceof PendingDecision) throw error;
      return failed(error);
    }
  }
}

const prefix = 'kubernetes.authorization.';

abstract class Check extends OpaqueValue {
  readonly decisions: Decisions;
  readonly user: UserInfo;
  readonly attributes: AccessAttributes;

  constructor(decisions: Decisions, user: UserInfo, attributes: AccessAttributes) {
    super();
    this.decisions = decisions;
    this.user = user;
    this.attributes = attributes;
  }

  equals(other: OpaqueValue): boolean {
    if (!(other instanceof Check) || other.user.name !== this.user.name) return false;
    return JSON.stringify(other.attributes) === JSON.stringify(this.attributes);
  }
}

const noAttributes: AccessAttributes = {
  ...{ verb: '', isResourceRequest: false, apiGroup: '', apiVersion: '', namespace: '' },
  ...{ resource: '', subresource: '', name: '', path: '' },
};

class PathCheck extends Check {
  readonly typeName = `${prefix}PathCheck`;
}

class GroupCheck extends Check {
  readonly typeName = `${prefix}GroupCheck`;
}

class ResourceCheck extends Check {
  readonly typeName = `${prefix}ResourceCheck`;

  with(more: Partial<AccessAttributes>): ResourceCheck {
    return new ResourceCheck(this.decisions, this.user, { ...this.attributes, ...more });
  }
}

/** The variable `authorizer`: asks what a user may do. */
export class AuthorizerValue extends OpaqueValue {
  readonly typeName = `${prefix}Authorizer`;
  readonly user: UserInfo;
  readonly #decisions: Decisions;

  constructor(user: UserInfo, authorizer: Authorizer | Decisions) {
    super();
    this.user = user;
    this.#decisions = authorizer instanceof Decisions ? authorizer : new Decisions(authorizer);
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof AuthorizerValue && other.user.name === this.user.name;
  }

  path(path: string): Result {
    if (path.trim() === '') return new Fault('path must not be empty');
    return new PathCheck(this.#decisions, this.user, { ...noAttributes, path });
  }

  group(apiGroup: string): GroupCheck {
    const attributes = { ...noAttributes, isResourceRequest: true, apiGroup, apiVersion: '*' };
    return new GroupCheck(this.#decisions, this.user, attributes);
  }

  serviceAccount(namespace: string, name: string): Result {
    if (dns1123SubdomainErrors(name).length > 0) return new Fault('Invalid service account name');
    if (dns1123LabelErrors(namespace).length > 0) return new Fault('Invalid service account namespace');
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
    const user = { name: `system:serviceaccount:${namespace}:${name}`, groups };
    return new AuthorizerValue(user, this.#decisions);
  }

  /** The variable `authorizer.requestResource`: a check of the resource of a request. */
  resource(of: Pick<AccessAttributes, 'apiGroup' | 'resource' | 'subresource' | 'namespace' | 'name'>): ResourceCheck {
    return new ResourceCheck(this.#decisions, this.user, { ...this.group('').attributes, ...of });
  }
}

class Decision extends OpaqueValue {
  readonly typeName = `${prefix}Decision`;
  readonly outcome: Outcome;

  constructor(outcome: Outcome) {
    super();
    this.outcome = outcome;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof Decision && other.outcome === this.outcome;
  }
}

/** The type of the variable `authorizer`. */
export const authorizerType = t.structType(`${prefix}Authorizer`);
/** The type of the variable `authorizer.requestResource`. */
export const resourceCheckType = t.structType(`${prefix}ResourceCheck`);

/** Authorization checks of Kubernetes. */
export function addAuthorizer(fns: Functions): void {
  const { stringType: text, boolType: bool } = t;
  const pathCheck = t.structType(`${prefix}PathCheck`);
  const groupCheck = t.structType(`${prefix}GroupCheck`);
  const decision = t.structType(`${prefix}Decision`);
  fns.member('path', [authorizerType, text], pathCheck, (x: AuthorizerValue, path) => x.path(path));
  fns.member('group', [authorizerType, text], groupCheck, (x: AuthorizerValue, group) => x.group(group));
  fns.member('serviceAccount', [authorizerType, text, text], authorizerType, (x: AuthorizerValue, namespace, name) =>
    x.serviceAccount(namespace, name),
  );
  fns.member('resource', [groupCheck, text], resourceCheckType, (x: GroupCheck, resource: string) => {
    if (resource.trim() === '') return new Fault('resource must not be empty');
    return new ResourceCheck(x.decisions, x.user, { ...x.attributes, resource });
  });
  for (const name of ['subresource', 'namespace', 'name'] as const) {
    fns.member(name, [resourceCheckType, text], resourceCheckType, (x: ResourceCheck, value: string) =>
      x.with({ [name]: value }),
    );
  }
  const selectorCost = ([, selector = null]: Parameters<typeof sizeOf>[0][]): number =>
    10 + traversal(sizeOf(selector)) + Math.ceil(sizeOf(selector) * 0.5) * 50;
  fns.member(
    'fieldSelector',
    [resourceCheckType, text],
    resourceCheckType,
    (x: ResourceCheck, fieldSelector: string) => x.with({ fieldSelector }),
    { cost: selectorCost },
  );
  // The authorizers of this server do not support selectors, so the check is for all objects.
  fns.member('labelSelector', [resourceCheckType, text], resourceCheckType, (x: ResourceCheck) => x, {
    cost: selectorCost,
  });
  const check = (x: Check, verb: string): Decision =>
    new Decision(x.decisions.decide({ ...x.attributes, verb }, x.user));
  for (const type of [pathCheck, resourceCheckType]) {
    fns.member('check', [type, text], decision, check, { cost: () => checkCost });
  }
  fns.member('allowed', [decision], bool, ({ outcome }: Decision) => outcome.allowed);
  fns.member('errored', [decision], bool, ({ outcome }: Decision) => outcome.error !== undefined);
  fns.member('error', [decision], text, ({ outcome }: Decision) => outcome.error ?? '');
  fns.member('reason', [decision], text, ({ outcome }: Decision) => outcome.reason ?? '');
}
