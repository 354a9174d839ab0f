import { filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const leaseSpec = s.message('k8s.io.api.coordination.v1.LeaseSpec', 'Holder and duration of a lease.', {
  holderIdentity: optional(1, s.string(), 'Identity of the holder.', { presence: true }),
  leaseDurationSeconds: optional(
    2,
    s.int32(),
    'Seconds after renewTime for which no other candidate takes the lease.',
    {
      presence: true,
    },
  ),
  acquireTime: optional(3, s.microTime(), 'When the holder took it.'),
  renewTime: optional(4, s.microTime(), 'When the holder last renewed it.'),
  leaseTransitions: optional(5, s.int32(), 'How often the holder changed.', { presence: true }),
  strategy: optional(6, s.string(), 'How a holder is chosen in coordinated elections.', { presence: true }),
  preferredHolder: optional(7, s.string(), 'Who should get it next in coordinated elections.', { presence: true }),
});
export interface LeaseSpec extends Infer<typeof leaseSpec> {}
export const LeaseSpecSchema: Schema<LeaseSpec> = leaseSpec;

const lease = s.message(
  'k8s.io.api.coordination.v1.Lease',
  'A lock that expires unless renewed, for elections and heartbeats.',
  {
    spec: filled(2, LeaseSpecSchema, 'Holder and times.'),
  },
);
export interface Lease extends KubeObject, Infer<typeof lease> {}
export const LeaseSchema: Schema<Lease> = lease;
