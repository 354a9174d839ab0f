import { always, type Infer, optional, type Schema, s } from '@keelson/core';

const resourceClaim = s.message('k8s.io.api.core.v1.ResourceClaim', 'A claim of the pod that a container uses.', {
  name: always(1, s.string(), "Name of the entry in the pod's resourceClaims."),
  request: optional(2, s.string(), 'Request within the claim; all of them by default.'),
});
export interface ResourceClaim extends Infer<typeof resourceClaim> {}
export const ResourceClaimSchema: Schema<ResourceClaim> = resourceClaim;

const resourceRequirements = s.message(
  'k8s.io.api.core.v1.ResourceRequirements',
  'What a container needs and may use.',
  {
    limits: optional(1, s.map(s.quantity()), 'Most that may be used, by resource.'),
    requests: optional(2, s.map(s.quantity()), 'Least that is needed, by resource; the limits by default.'),
    claims: optional(
      3,
      s.list(ResourceClaimSchema, { listType: 'map', listMapKeys: ['name'] }),
      'Claims of the pod that are used.',
    ),
  },
);
export interface ResourceRequirements extends Infer<typeof resourceRequirements> {}
export const ResourceRequirementsSchema: Schema<ResourceRequirements> = resourceRequirements;

const containerResizePolicy = s.message(
  'k8s.io.api.core.v1.ContainerResizePolicy',
  'What a change of a resource means for a running container.',
  {
    resourceName: always(1, s.string(), 'The resource: cpu or memory.'),
    restartPolicy: always(2, s.string(), 'NotRequired, or RestartContainer.'),
  },
);
export interface ContainerResizePolicy extends Infer<typeof containerResizePolicy> {}
export const ContainerResizePolicySchema: Schema<ContainerResizePolicy> = containerResizePolicy;
