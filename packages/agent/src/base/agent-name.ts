/** What the specification calls `<agent>` in paths. */
export const agentName = 'keelson-agent';

export const defaultRootDir = `/var/lib/${agentName}`;
