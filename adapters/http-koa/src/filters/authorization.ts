import { type RequestAttributes, StatusError, StatusReason, statusErrors, type UserInfo } from '@keelson/core';
import type { Authorization } from '../options.ts';

/** The 403 for a request that its user may not make: see docs/reference/api-rules.md#failures. */
function forbidden(attributes: RequestAttributes, user: UserInfo, reason: string | undefined): StatusError {
  const who = `User ${JSON.stringify(user.name)}`;
  const why = reason ? `: ${reason}` : '';
  if (!attributes.isResourceRequest) {
    return new StatusError({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: `forbidden: ${who} cannot ${attributes.verb} path ${JSON.stringify(attributes.path)}${why}`,
      reason: StatusReason.Forbidden,
      details: {},
      code: 403,
    });
  }
  const { verb, resource, subresource, apiGroup, namespace, name } = attributes;
  const full = subresource === '' ? resource : `${resource}/${subresource}`;
  const place = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`;
  return statusErrors.forbidden(
    { group: apiGroup, resource },
    name,
    `${who} cannot ${verb} resource ${JSON.stringify(full)} in API group ${JSON.stringify(apiGroup)} ${place}${why}`,
  );
}

/** Does nothing when the decision allows the request. @throws StatusError 403 */
export function requireAllowed(decision: Authorization, attributes: RequestAttributes, user: UserInfo): void {
  if (decision === true) return;
  if (decision === false) throw forbidden(attributes, user, undefined);
  if (!decision.allowed) throw forbidden(attributes, user, decision.reason);
}
