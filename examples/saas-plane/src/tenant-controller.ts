import { type ControllerDefinition, ownerReference, patchStatus, withCondition } from '@keelson/controller-kit';
import { Namespace, ResourceQuota, RoleBinding } from '@keelson/kinds';
import { namespaceOf, plans, Tenant } from './tenant.ts';

const apiGroup = 'rbac.authorization.k8s.io';

/** Gives each tenant a namespace that it owns, the role `edit` there, and the quota of its plan. */
export const tenantController: ControllerDefinition<Tenant> = {
  name: 'tenant-controller',
  kind: Tenant,
  owns: [Namespace, RoleBinding, ResourceQuota],
  reconcile: async (tenant, run) => {
    const { name, deletionTimestamp } = tenant.metadata;
    // Everything in the namespace goes with it, and it goes with its owner.
    if (deletionTimestamp !== undefined) return;
    const { client, read } = run;
    const namespace = namespaceOf(name);
    const ownerReferences = [ownerReference(Tenant, tenant)];
    if (read(Namespace).get(namespace) === undefined)
      await client.resource(Namespace).create({ metadata: { name: namespace, ownerReferences } });

    const bindings = client.resource(RoleBinding).namespace(namespace);
    if (read(RoleBinding).get(`${namespace}/owner`) === undefined)
      await bindings.create({
        metadata: { name: 'owner', ownerReferences },
        roleRef: { apiGroup, kind: 'ClusterRole', name: 'edit' },
        subjects: [{ apiGroup, kind: 'User', name: tenant.spec.owner }],
      });

    const quotas = client.resource(ResourceQuota).namespace(namespace);
    const hard = plans[tenant.spec.plan ?? 'free'];
    const quota = read(ResourceQuota).get(`${namespace}/plan`);
    if (quota === undefined) await quotas.create({ metadata: { name: 'plan', ownerReferences }, spec: { hard } });
    else if (quota.spec?.hard?.['count/configmaps'] !== hard['count/configmaps'])
      await quotas.patch('plan', 'merge', { spec: { hard } });

    const ready = { type: 'Ready', status: 'True', reason: 'Provisioned', message: '' };
    await patchStatus(run, Tenant, tenant, {
      conditions: [...withCondition(tenant.status?.conditions, ready, run.clock)],
    });
  },
};
