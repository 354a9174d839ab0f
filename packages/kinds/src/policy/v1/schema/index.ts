export { type Eviction, EvictionSchema } from './eviction.ts';
