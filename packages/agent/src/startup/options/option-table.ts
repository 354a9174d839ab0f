import type { AnyOption, ValuesOf } from '@keelson/core/internal';
import { accessOptions } from './access-options.ts';
import { evictionOptions } from './eviction-options.ts';
import { networkOptions } from './network-options.ts';
import { otherOptions } from './other-options.ts';
import { podOptions } from './pod-options.ts';
import { runtimeOptions } from './runtime-options.ts';
import { servingOptions } from './serving-options.ts';

/** Every option by section; the parser, the help text and the reference page are derived from it. */
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

/** Every option as a flat list. */
export const optionTable: readonly AnyOption[] = optionSections.flatMap<AnyOption>(({ options }) => [...options]);
