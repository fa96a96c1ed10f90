// Numbers as people read them.

/** At most four significant digits, with separators of thousands: 12,346; 1.234; 0.00123. */
export function short(value) {
  if (value === 0) return '0';
  const magnitude = Math.abs(value);
  if (magnitude >= 1e15 || magnitude < 1e-6) return value.toExponential(2);
  const decimals = Math.min(10, Math.max(0, 3 - Math.floor(Math.log10(magnitude))));
  return value.toLocaleString('en-US', { maximumFractionDigits: decimals });
}

/** 65536: "64 KiB". */
export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    ++unit;
  }
  return `${short(value)} ${units[unit]}`;
}

/** Nanoseconds, exactly: up to six decimals. */
export const exactNs = ns => `${ns.toLocaleString('en-US', { maximumFractionDigits: 6 })} ns`;
