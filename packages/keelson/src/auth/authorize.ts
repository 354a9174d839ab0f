import type { RequestAttributes, UserInfo } from '@keelson/core';

/** Paths that tell nothing about anybody's objects; open to every authenticated user. */
const discoveryPaths = ['/api', '/apis', '/version', '/openapi'];
/** Paths that load balancers and clients ask before they have an identity. */
const publicPaths = ['/healthz', '/livez', '/readyz', '/version'];

const under = (path: string, roots: readonly string[]): boolean =>
  roots.some((root) => path === root || path.startsWith(`${root}/`));

/**
 * Deny by default: members of `system:masters` may do everything, authenticated users may read discovery documents, everybody
 * may ask for health and version. Returns true when allowed.
 */
export function authorizeByGroup(attributes: RequestAttributes, user: UserInfo): boolean {
  if (user.groups.includes('system:masters')) return true;
  if (attributes.isResourceRequest || (attributes.verb !== 'get' && attributes.verb !== 'head')) return false;
  if (under(attributes.path, publicPaths)) return true;
  return user.groups.includes('system:authenticated') && (attributes.path === '/' || under(attributes.path, discoveryPaths));
}
