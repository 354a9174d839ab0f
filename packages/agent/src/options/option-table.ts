import type { AnyOption, ValuesOf } from './option.ts';
import { accessOptions } from './table/access.ts';
import { evictionOptions } from './table/eviction.ts';
import { networkOptions } from './table/network.ts';
import { otherOptions } from './table/other.ts';
import { podOptions } from './table/pods.ts';
import { runtimeOptions } from './table/runtime.ts';
import { servingOptions } from './table/serving.ts';

/** Every option, in the chapters of the specification: the one source of parser, help and reference page. */
export const optionSections = [
  { title: 'Serving, ports and credentials', options: servingOptions },
  { title: 'Authentication and authorization', options: accessOptions },
  { title: 'Runtime, containers and images', options: runtimeOptions },
  { title: 'Pods, resources and scheduling', options: podOptions },
  { title: 'Eviction', options: evictionOptions },
  { title: 'Networking, node identity and API client', options: networkOptions },
  { title: 'Other options', options: otherOptions },
] as const;

type Declared = (typeof optionSections)[number]['options'][number];

/** The value of every option. */
export type AgentOptions = ValuesOf<Declared>;
export type OptionName = keyof AgentOptions;

/** Every option in one list. */
export const optionTable: readonly AnyOption[] = optionSections.flatMap<AnyOption>(({ options }) => [...options]);
