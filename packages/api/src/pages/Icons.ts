/** The service's icon as SVG, and as images for old browsers and home screens. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"

const drawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1a56db"/><circle cx="16" cy="16" r="5" fill="none" stroke="#fff" stroke-width="3"/><path d="M21 12v6.5a3.5 3.5 0 0 0 7 0V16a12 12 0 1 0-5 9.7" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>`

/** 32 by 32, in the format that every browser accepts at `/favicon.ico`. */
const tab = Buffer.from(
  "AAABAAEAICAAAAEAIACOBgAAFgAAAIlQTkcNChoKAAAADUlIRFIAAAAgAAAAIAgGAAAAc3p69AAABkNJREFUeJy0VwlsVEUY/maPdrf3wW7bbUuB" +
    "ttALS4FyiNEEMYjBk9YKRCk0GjCmUvBo5BaKSCBCxAsTaIIgDXhhgpKYqJwqHi0tBWnL1QN6UXrQc3ef/0zd9/btASXKl7x2Z968+f/555vv/0cH" +
    "F0TkVE3R2KWF9DOZASlgLBz/BZLUKgGVYKi0M1bcWJL4i/NrJv/KvWSwdNvWSZK0nDFocQ8gSbBJDFuuhySswk42IDtgzrmYrrNbS2i1Y+40ia+e" +
    "YeJoA8yhOgwL1kKnAc5e6UdVXT+u3bBiaJDKrEy3oKlkVJmONzWSbe6djD8ywR9ZDwZixnh/GHyYxzFdPXb8Vd2HzSWt+LOq9zazsXRhEyhj5qzq" +
    "+7Ua6RhNqfE0dHSMD7YuNmN8ogF3g29OdKFoXwvqWzxHhXhhtzHteG1Q2isrGFimp0H5T4di57IoWMJ1qv6rTVacquzBsfIe8b+jW+ITIshPC82/" +
    "y0ga7oMFM4Nhpxe/nXePBi2YqGZnOvpyHDxEdMMiExbSBA7wiYq/b0fJzx2ouNTnyV/4GxgKssKRNysYPjomnsLnwhHir8X6z1rcP5BYkjYoNX8L" +
    "OaCK78tPhIrVO3C+th/zi+rJeCeabtrgDQMU7aNnuvHFsU6MiNAj3uIj+ieOMcDoy0TEXMJg1NCfYOe+eIser+eEye0TZ3swe0WtYPpQUddsRe7m" +
    "azh4tFO1qFmT/F3sI0K1uRrq+XhplAgdB2f0PFq51WXRelKJ5Dhf3DfKV7TLavpw7mqf27ilHzYiJEBLJ8dPtFc/b8IPf9zCgNM4lQPTM/yQEjcY" +
    "NpsdWPZRo9ukD6QZ8UF+pNAAZzS325C/o1EsguOnsm4uPCj8tAnHt8eJozvcrKMoBODQqS5l0c6TzJ+h7EbxkZu4UKcO+/LsMJSsinYzzmGivs9X" +
    "WLD3rcFnZuZguLk47fi6TR735LRA1Xca5wm4yDiw67t21cCH0v2wLEvhRjmdhN1H2sVT7uFUpI3wlX/v/7FDRIPjYbLBT4sD8hZMS/OTw3elcQCX" +
    "GwfkQcH+Gry3JEJub9rfive/alMZfPWZULyRo+QtB484eBROkl5MSzUK/oyLNwhyqyJgGabQ4exldei51xGhg2HnEutqnGP7l21obFMIMzJSr3pf" +
    "flGJkilEsaU4EKZ0VlxWK5c5RNnz0mrPIsTR0KrIrr9Rrex9A5LH+WSrdknyOJiDJ5m7hdWmnsNmV9qBfhp3B7i+OxBjUofPWXrTRvrCG5xX5rwd" +
    "t4PsSmm1Enae751RSkLjYPqkJIPQC1fwvmgnHrXfUjtg9FVW3W9VoiF/8fuFXspqdspoGoylVcaYdEJSHXiTBOXwxljxe0+hBaf/7hXE4tlvLCni" +
    "BJd0zY900d5Wuf1opnLEnfVFG5iav9bRSKWzmxQ7qIR9/RKOVyjJg4eU8iemphhFm682g4yOSzCo0jVXUH6cw4O0eGxyABKjfbD2BZPIMWJe4tfb" +
    "e1rQ3TcYBRVVD/+qSORLs0Pc6oCtB25gblEDbnS6728LSXHO+nqs3NUs9yVTTbCIUnNCtMKplbubxVgHmOXZKhVdj2yKlYnGtyV7Xb1qzzi4mKRQ" +
    "tLigcLZzflReUZLR7CkBWJdrQmSoQkouRquLm2mRt1RzuTnA9/LQhhi5/S0ljsXbruNuoSPbvIxLJyfLanqFgFk9HAxtQGr+EtqyAGdPnfd6DHFi" +
    "UpIRJ0k6O4eoB5xH775oxuNTA7Ge9rumYQB2yX0cdTVyEs4gewnOL3idF2vWC1JyxFF1M296kDjn3X12r4VmfJQeRXlmbMwziWoogkr3OhrL6wUv" +
    "OKEjL0rJgZmub3gtUNc8gII5YSIiASStebNCxNNDDOYFCD9O/Ojyypk/rqTl4nrmovfyXNg2zalJ1GtsFWTFx9OgTKrnPimIkpPRUMGjuIZI562U" +
    "oxtYlxWaDJEzLdlVhVSgveNtMn4b4sLyFBUT06m8MuiZV8Nctov2tYri9HaQ7Ci4djBx2+BM2ZLWgurT5EQG7gBeWk1ONiKDBEhLKsK3o5a2qraJ" +
    "HlLO1o4h5ABJKm1A4kQcYDbV5TSy27qWSXjtXl5OGWNbG/y0a1A8UpDDLZbiei5JucSQlP/1eg6cs2vYbtfr+T8AAAD//9jhkh0AAAAGSURBVAMA" +
    "BCFjny7vZl8AAAAASUVORK5CYII=",
  "base64",
)
/** 180 by 180 without rounded corners, which the device adds. */
const homeScreen = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAALQAAAC0CAIAAACyr5FlAAAQAElEQVR4nOydB3RU1brH97RMy0wq6ZSQBJGS0KVKx0aVJqKiXOUigqBB9CKKqNjF" +
    "QlN5gCAogoqoKL0IeCVFekkCIb236TOZzMz7Qt5i8cAj+5w5+8yZsH9rVlYWnEkmM//z7a/tb8tjJuUgCuXvkCIKhQEqDgojVBwURqg4KIxQcVAY" +
    "oeKgMELFQWGEioPCCBUHhREqDgojVBwURqg4KIxQcVAYoeKgMELFQWGEioPCCBUHhREqDgojVBwURqg4KIxQcVAYoeKgMELFQWGEioPCCBUHhREq" +
    "DgojVBwURqg4KIzI0e2EViVpFxfQLk6ZGKNIigsI08vUSqlaKdFc/apTN94qZpvbVu+xOeDhttd7jFb3xQLH+XzH2Tz4Wo9uJyTNfpd9QrRiUBft" +
    "oBTNna0DokO9vRlOXW4USka2fU+GpcbkQs2a5ikOMAMDOmsGd9EMStG2iiBiHT0edCrXceCEZd9fFlAMao40N3Hc10s7uq9udJ9AJCC1JveeTPOO" +
    "P8yHT1lRM6KZiKNXe9X4AfqRfQKDtb50sfPLnZv3G78+YAC5IP/H78Uxqk/gvPGh7VsGINHgdKFdaeZN+wxHz9qQP+Ov4pBI0OirsoDoA4kVCHNe" +
    "Xlf55wU78k/8TxwgizF9dfPGhyTFilcW13PghHXJV5WXip3I3/AzccDy8ensyI5tlMivcLnR1kPGd7ZUVxn8Kfr1G3EEyCWpE0NnjgqRy5CfAom1" +
    "z36pXbmjFr5B/oB/iKNbonLFs1GtIxXI/ymucs5YVnbSH1IjMl3HZ5G4eXN6i/dmRAQH+q3F+P/oNbKpQ4NMNvdfOWJ3VEVtOUJ10i9fjOmepELN" +
    "EUjAP7uiHFSCxIp4xdEpXvnVSzERwQQNRl65s7CiwWJ3Q7ENPiSLzd3g8gRpZVq1NFAlhSpdZKicaAalpLph+vulZ66IdIkRqTjG9A1cNTcK8QqU" +
    "WNOz7H9esOUU1V8qqc8qxCqxqhQSkGnntsrO8cruSerEWJ79HrvT88R7pb+fFmPeXYziWPhw2DNjQhBPgCCOnLHCI+0iD2t8XAv54C7awSmaAcka" +
    "jVKCeGLWp2U7jpmRyBCdOJbPjnxwgA55DVjsbYdNWw4aCioaEBn6dVSDazmmHz9FvkXrKtfvNiAxIS5xfDgz4qHBeuQd4OjBuyyYoQ7TQ/Shf/ye" +
    "4MgQb92jT36ofe/baiQaRCQO75UBgnj7m+rTuT7w72RSBC8+dWKYlxLZvN+w4ItKJA7Ekud4+18tpg4LQlxJu2ib+VHZih115bW+yU97PAiCjg27" +
    "DVaHJyVBpVRwdEeS26pCAmUHT4rCPxWFOF6bFj793mDEiVqTO/Xz8iUbq0trfF+2aHCDTO1QrJdKJRDgyGVcJNI1SVVU5TyX5/t+Vd8vK48M07/7" +
    "VATiBLgXqZ+V14iys6Z1pHzN89HcaoQut2fS68U+r/X7WByd2ih3v9sSsQfSAy98XvHDERMSN4sfC5/xABejCHm5B14u9G2h35figDzBwQ9bxbVg" +
    "nVaCMHXqWyXZRf6xUaBvB/WquZEtgln3ORdWOO95qdBg8Zld9GXH5cq5URyU8cc524gFBf6iDOCP87bB8wsyslmvES0jFMvn8JwmZoXPxPHvkcEj" +
    "umsRS9bvMkx+o7jW7Gftu+A1T369mENv+tCumokDeUgJcsM34oA6BeTIEUve31qzaH2l2z8aZW4EnKRH3ynZcYy1k/T64+FRIb5pV/CBOOQytHpe" +
    "JNsw77Ofaz/+vgb5My431FDK1++qY/UsvUb2yTORyBf4QByQ0oiPYlcHhzf0jU0iyit7w6L1VRv3sKuh9O+smeSLxUVocQRppakTQ1k9BTLK8Iai" +
    "ZsTCdZVsSz9LfLG4CC2OFx8KC1Sz+KXgxImn1sAXkGuf/kHp+XwWNSBYXF6aEo6ERVBxJMUqIB+Kf31pTcPMj8uQIMS1kHdJUMIDvkHksTk8Dy8t" +
    "gYQN/lPGDwhsI2yLtaDzOd55KkImxfVDG1yNLVJGK5GotWui8r5egb3aqyND5OFBspvbdqB+VmVwldc2QEnv1+NmEs3ilQbXkx+U7nwrTiLBek+g" +
    "XvPchNC5K8uRUAiXIe2epPrpzTj86xdvqPqfX9k59rekV3vVA3cF3n9XYEwYu7uiuKph53EzqCQ9i+d6xyuPhM8chZtfd7s9A+YV5JULlFMXThyf" +
    "Pxc1sjdu09TJy/YHFhYh/hjTNzB1UlhCtLdmGYod72+t/uVP3lr6FDJ0aFnrNlG4L+z7I6ZnVwhkPAQSB3ja6avaSPHWFI/HM3xB4YUCfhLkI3po" +
    "F0wOu7MVn03k5/Lr39tSte8vfrouUtoqf1kah/nmCGk8BOrngLu2xx1qzIs37TNuOchDuXVgimbV3KiZI4NbBPEcBEYEy8b11w3uooHaWFOPKoTo" +
    "o/oETrhbP/2+4OS2SvBjYCVyOLGyueW1LkgJ9u6A9f6Ag6IOkO7NtCDyCGE5tCrJqTXx8CfhXAyl6p6z8rz0Q8HD++DfPLSj4gAZLXBHVsy5se5a" +
    "Udcwe3n5MbwRHbC4pK1qE4FXubXa3ckzrgiw4VYIy/Gv+4KHdsWtsb2+qeq4d00uSoVk/QvRo/oIlFJMSVBNHKjXqm6UPvwL/DuEJDg9rVAwMtnc" +
    "mJVIhVxypdR5jvxoQyHyHE/ej+uNF1Y2QN0VeUGwVrp9SeyQrqzrvYR4bVp4PJ6z+fV+45UyXE9isiBGkbg4BqVo8Ac8rv3Nq9hVrZT8sCQObmUk" +
    "GlQKCf69AXEQ5pW971S3JJ+sIy6OYd1wb2Kwq1/v5242wM9YNz/6DjENB2tiQLIG88odx8w5xbiLxdSh3Jv1MSEujvvvwhXH5n1Gi527k/Xqo+F3" +
    "Y38MQgLJFfxw6au9RswrR5Ifp0lWHO1bBkB+GudKCN/X7KxFXBnbL5BbH68wJGKPL9t22OhswLpDwJVhm+dlC1lxDO+BazZ+P2Mr47ofqVuS6uNZ" +
    "vmmH4R2I4fdg5zAGdSFrKclKbzh2lyiULRBXVs+NgugOcQIcHfjVWYX1NSZXZV2jOlsEy0J1MvBdRvbWQYYGCc6Wg0YoAOFcOTBZAzEOIgZBcchl" +
    "qGsC1pYeyJfv5FqteOLeIG5Fdkh+b95v2JPBeJs+v7ri3p7aR4cHQcCFBOTwKSukuTSqWxv1AZ1xk87cICiOjm2UmPWCtIuOOk67MyBQfH4Cu74y" +
    "ABKaH31Xg1O72ZVugUeH1gHzxodi3s3e43Kjo2dtIzBW5CCtLCVBSW4sP0GfoxP2TsBf0ziajadGBsMSgH99g8vz3OryGcvKWFX1zufXw1PgiS6h" +
    "Ot/xmwi7kRyYRtZyYF7JoWEf0Kmls0azGABksLgffbskk+sMv62HTPnlzi8XxOg1xOP/w9jiIDrdm+DfiSkOSJlXcprrO7a/Dv9zgvjwES+U0QQU" +
    "fUBeAtiP3FJncRVWKp3ojG+i4sB63RcLOC6ZQ9gEcvNWlfMy9zMj2/7iGiEanv/KwXpb/NJyQFoQs0Z/kVNTD3i6+L46hCQ/8jeO7ZsDxgMniA9X" +
    "uVyC9baE6WXBgaQ+RFI/t2UEbt/bxUIu4ujbUa1WYr14WAWWbOR528urGypJLy6XSnArtOTKSaTEgT+NOquQy7IyuAtuem3jHiPvTXVXSp1Es08I" +
    "23KgxpWF1BkSpMQRosP9yUWVXEZBdorHfUfW7+a5hb2JLwmPhcwtxRVHJLGdcMTEgWc5IDfKbfg35tjrkuqGyyVEenFhNTRYCE4hM9s8mDVqjdLf" +
    "fA5ML8lg5bhyYw7KIeo5ZmaTndlldWDdNmolqQKQj30Og5nLzQdVmxA88V0oIDiTNJ/YbOQmoMKCcxk5y0EqQ4opDm5d5hHY87VqzUQtP+6L53ag" +
    "qc+XFVLiCMCroZs5ORwtsM/ZIHq+q8mKqzxuqQgLnuVQBZBaVkiJw+YgaBI92I6KguRICwn2hyKVcvn8oEyIcxk5n4OUODCdKQ2nbhr8MxY5DHjE" +
    "Bz+XU2f2p0Mhr0FMHCTXy8o6XE8wPIig6cAXhzhnLN8SUr6MleSy4nQhzOYgoifQsp1s5neQEwfeesm1SbOqDstQD0pRS8msyPBjuyZScXAC19NW" +
    "SLgdhlWBt7LoNbIedxDplerdQa1U+HL+swCQ+vMqanHdAm6WH//EncdHENnPMm0E8Q1nPoeUOPArGomcepn2ZOL2Z4zpF8j78Z9Q9sOfUuS/kBJH" +
    "VhHunc2t0e34BbsROwe1+DGehzQufULoqY8+gZQ4oKiImY3ownVT/J4M3KLa3cmaqUN5m1nwxD1B+FOK/BqCLhXmytK9nZLbiWj/sB/pZt5+skVP" +
    "PjzTvh3USx6/LcwGIioOzGkCcpmkV3suH9vO42b8Ia8yqWTDizFe6gNe59oXomXsg2NWQ5vZPgtz8hgHCIrjVC5uu0O/jhz3G364jcU5CkFa6XeL" +
    "Y8f15+hIThqk2/ZqLLdNKxwiMijcYPrRlXWkcvMExXH0DK5P0K8TxyX820PGS8Us+pPBSq2YE7V2fnRsOIu6AVy8fkH0R09HcjvtEejYmrU4OrQK" +
    "wNwdjl9MYAtBcRRUNBRWYLkdXROV3BohoTz7zhbWR23c21ObtrLN/Emht/ylcMGCyWFwMYdDpa4Hv+P1uqfgroAVBlKWg+wIhiNnbA8PvfUeBYlE" +
    "MnmQ/tPtXIa3/JZmgYRYclvW7/5z40PhkVvqPHLGml/urDG5KupccikK1cvC9LJWEQqIceKj+BlE3ypCDnkR/LnHAXI0azRu7q6CmOUgO4d0TN/A" +
    "VXOxjrArqHD2mZOPOAFr8y9L49RKUSezbQ73sBcKMTdJrJgTOa4/7qjMnrPyWJ2+gA/ZNxQsB+aVcKfedSfHUOJiYf2cFcKdJcAN0C6ESzi+zrzx" +
    "ofjKyCqsJ6QMRHpIra3e07+TBnO4CoSIu9I5Tm2+VOyUSlGfDqLOTcGCNWWIHnKDZ/P+Pn0cFSJbtyCG1eDlTfsMf5zDvQPZQnyCMXxmI/Amg3Vo" +
    "rdx62Mh5sDW8RykJyrbRoi6jBygk9/TQdktS1Td47PXupgOFIQcIpeOJA/Wr5kYnxLDzchZvrKogFsoSn30OmZysL9tiXvzNAeP8zysQV7Qqyc63" +
    "WhKdSsAvdRZ3UYWTQyzTREa2fcwrfB48cgPEnTizzb39KO5slokDdawyEDdgsXtGvlx45AzxLfB8EayVclYGsHAt9xsJByE8/K2HccUBWSYIL5EX" +
    "QMFvytKSNTuJ7I9lYtvvZDdV/y1QPTiXR3Y2vhDi+P20Fd+jhix153ivGj8hM/baxqrnVpdjtvZ7A7gOs5eXzVtZ8eMxHg6IwYfEXImbESg3AE41" +
    "5pUQs3z4NA8TZ7ceMg2ZX3CU5BIDP3xIasH2o42prUXrKwsrye6OvJ7FG6qKq4j/OoFOajqT65g2IkiFN+snIlhmdbgzvN6mXGtyf/e76dRle3KC" +
    "itXQwVtyucQ5d2X5+1tr6sz/F1vZ/EnBQwAABo9JREFU6z2HT1kg4giQk9pidI1vDxrf3SLEye0CicPpQgq5tF9H3DwEFMfBjeXl3NArZc6NewwG" +
    "qxsCSG6NI9cDwefb31TPW1UOefcb/qvG5D6da4f8lURCUB+Z2bbpH5QJM/JSuNMhIc5MWxWPv6X4rxz7qEV8xmmqAMnAFA2kGYZ317I1JNVG195M" +
    "y55My+GTVvs/9k88OEC3fDapQezpWfZp75YYLAJtkRJOHMDcB0OgyIl//aZ9xhfXEInWIFV/T49AsCW3PHQ4M9u+K53dcbLd26k2LIgO0fG82e6H" +
    "IyawWC4B984JKg74DDJWtwnSsnjXIOgA1xKRB3L84XqZ5+pGXO99vegw+ZaXYxJ5Sse5PWjp5qrPfhY0PkeC+RxNgOdhtHrwz24ChnbV7jthJZch" +
    "vgb4N2W1YCpcJj4cHUj9QbYXknJdEr11dP573vb4e6W704U4K/QGBLUcTfz8Zhyrid2w3o9bXERotBdpQgKlqRPDHh0eJGe/yGQX1b+5qWr/CZ8l" +
    "fH0gjvgoxYEPW7EK+fxaH+jqbMWRvXWj+gRC3fiW7clgvX49bv75T5OXR6h6jw/EAcwZF/LSQyw8U9QYKLrGvlJ0udRf9dEEqGR0H13LCIVOLdVp" +
    "pPBVIZdY7G5Y1MxWd53Fdeys7c8LpErwbPGNOID9H7Riu0sRPI8Jr/m9PvwIn7XWzVhWijka6hqQOYWK/MDk22K3mRgQNFq5Hsht5xTXj+7L7lBx" +
    "8PwfHKCHitrxiz5ej28HfLasNLHw4bBnxrA4UOcav6VZ5qwoszmEySN7BRQNZo8NgZxH00mf2w6boAyZke0H4vaxOIAti2K5HWSXX+5c8EXF0bNi" +
    "cd9uJjpU/s5TEcO6/c1+vs37jfDikbjx2bJyDahZQLFKx36bYXCgDKqgrSIUkCYit1+UM1CFXvdCDJPTndxW2b5VwM//5e0UGBL4Xhzwue7NsEAO" +
    "QKviuA118iB9SVVDVhHZtih8EmMVm/4TM3Vo0D/nctrFBWQV1ucUi+Vl34zvl5Um2kQqtr8eG+HF2NDMHPsn39f4MJ8IgFeROjF0wt16zHzoycv2" +
    "BxYS7BD2ErGIA13Vx7bFsV6ez34uv/7TH2p2Hjd7hF1n4GXPnxQ6foCebZo86bHLVrG61SISB7paGt2+JM5LfaCrnVrLf6yBGjfpArdEAqVBzdRh" +
    "QVAglHHKGaXMuFJlEOl8Y3GJA13Vx3eL41q24GGHt8HiPnTSuivdfPCklduRP/9AZIgMvIopQ/ReSrnXM3kCdINyQ3TiQFd3c3yRGo3fU4hDepY9" +
    "M9t+Ns9x+rKdcwK+e5IqOUHZNVHVOV7Jy5mdhZUNvWfnIbEiRnE0sWRa+JP3Exkhara5T+c6TuU6ymoaoJ5XWddQZ3ZD4bekugEysBA0NZXEtGpJ" +
    "fFRAQrQiMS4gKTaAr3EM17PsuxpWw4kERrziACC+/eSZSO+7gsVJbmn9ff8pNNvEm+QV9UwLyBGNfLmwvFakS7I31JldU5aWiFkZSOTiAM7n1w9O" +
    "Lfj2kA/2G5LjUrFz8hslRZViF72ol5Xr6dVe9fGsyNaR/C/8QgLp4E+31674sabBH07n8X36HBOI977aa5RJJd3bqaX+eVoB5HCnvFmyK93i9oNa" +
    "ciN+YzmuAaWsZU9HpCQQOSiDEJBleWtz9ca9ZA+x5h3/E0cT9/bUzhkX2iWB4EFMvABh85e7Dat/qq2zCLgbiSf8VRxN9O+knj02lFs7CGmMVvfa" +
    "3+q++KWOlx2/PsG/xdFEclvls+NCwZZIxJEQqTW71/5a98XOWsxTg0VLcxBHE1DjmDhQB+XyttG+iWicLnTwpOXHoyZwOUXYfMSB5iOOa0AFZMJA" +
    "3ei+Om6HhLPF40FpF+3bj5l++sNk8EPH4h9ohuK4xth+OnBHerRTJ8bybEsg+jh5yZGRbTuR01jP80dnE4fmLI5rQBWta5KqRztVt6TGRxB7iwKF" +
    "3Jyi+qauvnN5jmzRtCQS5bYQxw1AiTUqVKYKkEJJr/ER0PhV1fiN1O32WB0em8MNX60Ot83hgZrthYLbQgo3Q/bUBHECd39OMaLckmZ+bC7FG6g4" +
    "KIxQcVAYoeKgMELFQWGEioPCCBUHhREqDgojVBwURqg4KIxQcVAYoeKgMELFQWGEioPCCBUHhREqDgojVBwURqg4KIxQcVAYoeKgMELFQWGEioPC" +
    "CBUHhREqDgojVBwURqg4KIxQcVAYoeKgMPK/AAAA///uRqxuAAAABklEQVQDAD5ZpVkEPFA/AAAAAElFTkSuQmCC",
  "base64",
)

const headers = { "cache-control": "public, max-age=86400" }
const picture = (bytes: Uint8Array, contentType: string) =>
  Effect.succeed(HttpServerResponse.uint8Array(bytes, { contentType, headers }))

export const layer = Layer.mergeAll(
  HttpRouter.add(
    "GET",
    "/icon.svg",
    Effect.succeed(HttpServerResponse.text(drawing, { contentType: "image/svg+xml", headers })),
  ),
  HttpRouter.add("GET", "/favicon.ico", picture(tab, "image/x-icon")),
  HttpRouter.add("GET", "/apple-touch-icon.png", picture(homeScreen, "image/png")),
)
