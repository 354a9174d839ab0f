import { ageColumn, conditionSchema, defineKind, fieldError, nameColumn, type ObjectOf, optional, s } from 'keelson';

/** What a plan allows in the namespace of a tenant, in the units of resource quotas. */
export const plans = {
  free: { 'count/configmaps': '3', 'count/secrets': '3' },
  team: { 'count/configmaps': '100', 'count/secrets': '100' },
} as const;

/** A customer: a namespace, its owner, and its plan. */
export const Tenant = defineKind({
  group: 'saas.example.com',
  version: 'v1',
  kind: 'Tenant',
  scope: 'Cluster',
  schema: s.object({
    spec: s.object({
      owner: s.string({ minLength: 1 }),
      plan: optional(s.enum('free', 'team'), 'Determines the quota.', { default: 'free' }),
    }),
    status: optional(s.object({ conditions: optional(s.list(conditionSchema)) })),
  }),
  subresources: [{ type: 'status', name: 'status' }],
  columns: [
    nameColumn(),
    { name: 'Owner', type: 'string', value: ({ spec }) => spec.owner },
    { name: 'Plan', type: 'string', value: ({ spec }) => spec.plan ?? '' },
    ageColumn,
  ],
  strategy: {
    nameRule: 'dns1123Label',
    validateUpdate: ({ spec }, old) =>
      spec.owner === old.spec.owner ? [] : [fieldError.forbidden('spec.owner', 'field is immutable')],
  },
});
export type Tenant = ObjectOf<typeof Tenant>;

/** The namespace of a tenant. */
export const namespaceOf = (tenant: string): string => `tenant-${tenant}`;
