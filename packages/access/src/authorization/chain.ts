import {
  type AccessAttributes,
  type AccessDecision,
  type Authorizer,
  mastersAuthorizer,
  mastersGroup,
  type UserInfo,
} from '@keelson/core';
import { joinRules } from './rules.ts';

const allowed: AccessDecision = { allowed: true };

/** Allows everything. */
export const alwaysAllow: Authorizer = {
  authorize: () => allowed,
  rulesFor: () => ({
    resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
    nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
    incomplete: false,
  }),
};

function withoutOpinion(reasons: readonly string[]): AccessDecision {
  return reasons.length === 0 ? { allowed: false } : { allowed: false, reason: reasons.join('\n') };
}

/**
 * Asks several authorizers in order. The first that allows or denies a request decides; a request on which none has an
 * opinion is not allowed, with the reasons of all. Members of `system:masters` are always allowed. The decision is
 * synchronous as long as every authorizer that is asked decides synchronously.
 */
export function authorizerChain(members: readonly Authorizer[]): Authorizer {
  const decide = (
    attributes: AccessAttributes,
    user: UserInfo,
    start: number,
    reasons: string[],
  ): AccessDecision | Promise<AccessDecision> => {
    for (let i = start; i < members.length; i += 1) {
      const decision = members[i]?.authorize(attributes, user);
      if (decision instanceof Promise) {
        return decision.then((settled) => final(settled, reasons) ?? decide(attributes, user, i + 1, reasons));
      }
      const decided = decision && final(decision, reasons);
      if (decided !== undefined) return decided;
    }
    return withoutOpinion(reasons);
  };
  return {
    authorize: (attributes, user) => (user.groups.includes(mastersGroup) ? allowed : decide(attributes, user, 0, [])),
    rulesFor: async (user, namespace) =>
      user.groups.includes(mastersGroup)
        ? mastersAuthorizer.rulesFor(user, namespace)
        : joinRules(await Promise.all(members.map(async (member) => member.rulesFor(user, namespace)))),
  };
}

/** The decision when it allows or denies; otherwise its reason is added to `reasons`. */
function final(decision: AccessDecision, reasons: string[]): AccessDecision | undefined {
  if (decision.allowed || decision.denied) return decision;
  if (decision.reason) reasons.push(decision.reason);
  return undefined;
}
