import { ClusterRole, ClusterRoleBinding } from '@keelson/kinds';
import Router from '@koa/router';
import { type ControlPlane, isStatusError, type RequestState } from 'keelson';
import { Tenant } from './tenant.ts';

/** `POST /sign-up/NAME`: creates a tenant that belongs to the user of the request. */
export const signUp = new Router<RequestState>().post('/sign-up/:name', async (ctx) => {
  const { user, plane, logger } = ctx.state;
  // The user may not create tenants; the plane does it, with the owner that the request was authenticated as.
  const spec = { owner: user.name };
  const tenant = await plane.client(Tenant).create({ metadata: { name: ctx.params['name'] ?? '' }, spec });
  logger.info('a tenant signed up', { tenant: tenant.metadata.name });
  ctx.status = 201;
  ctx.body = { tenant: tenant.metadata.name, plan: tenant.spec.plan };
});

/** Lets every authenticated user sign up. */
export async function allowSignUp(plane: ControlPlane): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io';
  const name = 'sign-up';
  const ignoreExisting = (error: unknown) => {
    if (!isStatusError(error, 'AlreadyExists')) throw error;
  };
  const rules = [{ verbs: ['post'], nonResourceURLs: ['/sign-up/*'] }];
  await plane.client(ClusterRole).create({ metadata: { name }, rules }).catch(ignoreExisting);
  await plane
    .client(ClusterRoleBinding)
    .create({
      metadata: { name },
      roleRef: { apiGroup, kind: 'ClusterRole', name },
      subjects: [{ apiGroup, kind: 'Group', name: 'system:authenticated' }],
    })
    .catch(ignoreExisting);
}
