export { type Lease, LeaseSchema, type LeaseSpec, LeaseSpecSchema } from './lease.ts';
