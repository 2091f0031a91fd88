#pragma once

constexpr int TILE = 64;
